"""Runs the blocks of docs/clients.md for asyncpg. Each line of the output is a step, an ID and a name."""

import asyncio

import asyncpg


async def main():
    connection = await asyncpg.connect()
    ada = await connection.fetchval("INSERT INTO customers (name) VALUES ($1) RETURNING id", "Ada")

    print("insert", ada, "Ada")

    rows = await connection.fetchmany(
        "INSERT INTO customers (name) VALUES ($1) RETURNING id, name",
        [["Grace"], ["Edsger"]],
    )

    for row in rows:
        print("bulk", row["id"], row["name"])

    names = ["Barbara", "Donald", "Alan"]
    first = await connection.fetchval("SELECT snowflake_reserve($1)", len(names))
    records = list(enumerate(names, first))
    await connection.copy_records_to_table("customers", columns=["id", "name"], records=records)

    for id, name in records:
        print("block", id, name)

    for row in await connection.fetch("SELECT id, name FROM customers ORDER BY id"):
        print("read", row["id"], row["name"])

    names = [["Niklaus"], ["Tony"]]
    ids = await connection.executemany("INSERT INTO customers (name) VALUES ($1) RETURNING id", names)

    for (name,) in names:
        print("trap", ids, name)


asyncio.run(main())
