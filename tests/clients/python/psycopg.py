"""Runs the blocks of docs/clients.md for psycopg 3. Each line of the output is a step, an ID and a name."""

import json
from itertools import zip_longest

import psycopg

connection = psycopg.connect()
cursor = connection.execute("INSERT INTO customers (name) VALUES (%s) RETURNING id", ["Ada"])
(ada,) = cursor.fetchone()
connection.commit()

print("insert", ada, "Ada")

decoded = connection.execute("SELECT * FROM snowflake_decode(%s)", [ada]).fetchone()

(created_at, *_) = decoded
print("decoded", created_at.year, "year")

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
    # JSON has all digits, and a browser reads every number as a floating-point number.
    print("json", json.dumps(id), name)
    print("browser", int(json.loads(json.dumps(id), parse_int=float)), name)
    print("right", json.loads(json.dumps(str(id)), parse_int=float), name)

for id, name in connection.execute("SELECT id, name FROM customers ORDER BY id"):
    print("read", id, name)

names = [f"customer_{n}" for n in range(70_000)]
rows = connection.execute("SELECT id FROM snowflake_nextval_batch(%s) AS id", [len(names)])
ids = [id for id, in rows]
with cursor.copy("COPY customers (id, name) FROM STDIN") as copy:
    for id, name in zip(ids, names):
        copy.write_row([id, name])
connection.commit()

assert all(before < after for before, after in zip(ids, ids[1:]))
print("large", ids[0], names[0])
print("large", ids[-1], names[-1])
(count,) = connection.execute("SELECT count(*) FROM customers WHERE id = ANY(%s)", [ids]).fetchone()
print("copied", count, "rows")

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
