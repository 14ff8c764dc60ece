"""Runs the expressions of docs/portable.md. The input is a JSON object: "ids" is a list of IDs, and "blocks" has the block of each program.
The output is a JSON object with the rows of each program: ID, milliseconds since 1970, worker ID and sequence.
"""

import json
import sqlite3
import sys
from datetime import UTC, datetime, timedelta

import chdb.session
import duckdb
import pandas
import polars


def milliseconds(time):
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


def with_duckdb(ids, block):
    with duckdb.connect() as database:
        database.execute("CREATE TABLE orders (id BIGINT)")
        database.execute("INSERT INTO orders SELECT unnest(?::BIGINT[])", [ids])
        return database.execute(block).fetchall()


def with_sqlite(ids, block):
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    database.executemany("INSERT INTO orders VALUES (?)", [(id,) for id in ids])
    return database.execute(block).fetchall()


def with_clickhouse(ids, block):
    with chdb.session.Session() as session:
        session.query("CREATE DATABASE shop; CREATE TABLE shop.orders (id Int64) ENGINE = Memory")
        session.query(f"INSERT INTO shop.orders VALUES {', '.join(f'({id})' for id in ids)}")
        return json.loads(str(session.query(f"USE shop; {block}", "JSONCompact")))["data"]


def with_pandas(ids, block):
    orders = pandas.DataFrame({"id": ids}, dtype="int64")
    exec(block, {"orders": orders, "pd": pandas})
    return [(row.id, row.created_at.to_pydatetime(), row.worker_id, row.sequence) for row in orders.itertuples()]


def with_polars(ids, block):
    given = {"orders": polars.DataFrame({"id": ids}, schema={"id": polars.Int64}), "pl": polars}
    exec(block, given)
    return given["orders"].select("id", "created_at", "worker_id", "sequence").rows()


given = json.load(sys.stdin)
programs = {
    "duckdb": with_duckdb,
    "sqlite": with_sqlite,
    "clickhouse": with_clickhouse,
    "pandas": with_pandas,
    "polars": with_polars,
}
found = {}
for name, block in given["blocks"].items():
    rows = [[int(id), milliseconds(time), int(worker), int(sequence)]
            for id, time, worker, sequence in programs[name](given["ids"], block)]
    found[name] = sorted(rows)
json.dump(found, sys.stdout)
