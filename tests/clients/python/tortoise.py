"""Runs the blocks of docs/clients.md for Tortoise ORM. Each line of the output is a step, an ID and a name."""

import os

from tortoise import Tortoise, connections, fields, run_async
from tortoise.models import Model


class Customer(Model):
    id = fields.BigIntField(primary_key=True)
    name = fields.TextField()

    class Meta:
        table = "customers"


async def main():
    credentials = {"host": os.environ["PGHOST"], "user": "postgres", "database": "postgres"}
    database = {"engine": "tortoise.backends.asyncpg", "credentials": credentials}
    await Tortoise.init({"connections": {"default": database}, "apps": {"shop": {"models": ["__main__"]}}})

    ada = await Customer.create(name="Ada")

    print("insert", ada.id, ada.name)

    customers = [Customer(name="Niklaus"), Customer(name="Tony")]
    await Customer.bulk_create(customers)

    for customer in customers:
        print("trap", customer.id, customer.name)

    names = ["Barbara", "Donald", "Alan"]
    connection = connections.get("default")
    [row] = await connection.execute_query_dict("SELECT snowflake_reserve($1) AS first", [len(names)])
    customers = [Customer(id=id, name=name) for id, name in enumerate(names, row["first"])]
    await Customer.bulk_create(customers)

    for customer in customers:
        print("block", customer.id, customer.name)

    for customer in await Customer.all().order_by("id"):
        print("read", customer.id, customer.name)


run_async(main())
