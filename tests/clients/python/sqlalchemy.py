"""Runs the blocks of docs/clients.md for SQLAlchemy 2. Each line of the output is a step, an ID and a name."""

from sqlalchemy import BigInteger, create_engine, event, func, insert, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customers"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, server_default=text("snowflake_nextval()"))
    name: Mapped[str]


engine = create_engine("postgresql+psycopg://")
Base.metadata.create_all(engine)
session = Session(engine)
ada = Customer(name="Ada")
session.add(ada)
session.flush()

print("insert", ada.id, ada.name)

inserts = []
event.listen(engine, "before_cursor_execute", lambda *call: inserts.append(call[2]))
rows = session.execute(
    insert(Customer).returning(Customer.id, Customer.name),
    [{"name": "Grace"}, {"name": "Edsger"}],
)

for row in rows:
    print("bulk", row.id, row.name)
print("statements", len(inserts), "returning")

inserts.clear()

names = ["Barbara", "Donald", "Alan"]
first = session.scalar(func.snowflake_reserve(len(names)))
customers = [Customer(id=id, name=name) for id, name in enumerate(names, first)]
session.add_all(customers)
session.commit()

for customer in customers:
    print("block", customer.id, customer.name)
print("statements", len([sql for sql in inserts if sql.startswith("INSERT")]), "block")

for customer in session.scalars(select(Customer).order_by(Customer.id)):
    print("read", customer.id, customer.name)

inserts.clear()
session.add_all([Customer(name="Niklaus"), Customer(name="Tony")])
session.flush()

print("statements", len(inserts), "add_all")


class Account(Base):
    __tablename__ = "accounts"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


Base.metadata.create_all(session.connection())
account = Account(name="Tony")
session.add(account)
session.flush()
print("trap", account.id, account.name)
session.commit()
