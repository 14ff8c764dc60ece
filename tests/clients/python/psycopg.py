"""Runs the blocks of docs/clients.md for psycopg 3. Each line of the output is a step, an ID and a name."""

from itertools import zip_longest

import psycopg

connection = psycopg.connect()
cursor = connection.execute("INSERT INTO customers (name) VALUES (%s) RETURNING id", ["Ada"])
(ada,) = cursor.fetchone()

print("insert", ada, "Ada")

names = ["Grace", "Edsger"]
with connection.pipeline():
    insert = "INSERT INTO customers (name) VALUES (%s) RETURNING id"
    cursors = [connection.execute(insert, [name]) for name in names]
    ids = [cursor.fetchone()[0] for cursor in cursors]

for id, name in zip(ids, names):
    print("bulk", id, name)

names = ["Barbara", "Donald", "Alan"]
(first,) = connection.execute("SELECT snowflake_reserve(%s)", [len(names)]).fetchone()
with cursor.copy("COPY customers (id, name) FROM STDIN") as copy:
    for id, name in enumerate(names, first):
        copy.write_row([id, name])
connection.commit()

for id, name in enumerate(names, first):
    print("block", id, name)

for id, name in connection.execute("SELECT id, name FROM customers ORDER BY id"):
    print("read", id, name)

names = ["Niklaus", "Tony"]
cursor.executemany(insert, [[name] for name in names], returning=True)
ids = [id for id, in cursor.fetchall()]  # only the first ID

for id, name in zip_longest(ids, names):
    print("trap", id, name)

cursor.executemany(insert, [[name] for name in names], returning=True)
ids = [cursor.fetchone()[0] for _ in cursor.results()]

for id, name in zip(ids, names, strict=True):
    print("right", id, name)
connection.commit()
