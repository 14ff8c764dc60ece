"""Runs the blocks of docs/clients.md for peewee. Each line of the output is a step, an ID and a name."""

from peewee import BigAutoField, Model, PostgresqlDatabase, TextField

database = PostgresqlDatabase("postgres")


class Customer(Model):
    id = BigAutoField()
    name = TextField()

    class Meta:
        database = database
        table_name = "customers"


ada = Customer.create(name="Ada")

print("insert", ada.id, ada.name)

customers = [Customer(name="Grace"), Customer(name="Edsger")]
Customer.bulk_create(customers)

for customer in customers:
    print("bulk", customer.id, customer.name)

names = ["Barbara", "Donald", "Alan"]
((first,),) = database.execute_sql("SELECT snowflake_reserve(%s)", [len(names)])
rows = [{"id": id, "name": name} for id, name in enumerate(names, first)]
Customer.insert_many(rows).execute()

for row in rows:
    print("block", row["id"], row["name"])

for customer in Customer.select().order_by(Customer.id):
    print("read", customer.id, customer.name)

((id,),) = database.execute_sql("SELECT snowflake_nextval()")
tony = Customer(id=id, name="Tony")
tony.save()  # an UPDATE of no row

print("trap", tony.id, tony.name)

((id,),) = database.execute_sql("SELECT snowflake_nextval()")
niklaus = Customer(id=id, name="Niklaus")
niklaus.save(force_insert=True)

print("right", niklaus.id, niklaus.name)
