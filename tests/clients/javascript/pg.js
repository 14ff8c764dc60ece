// Runs the blocks of docs/clients.md for node-postgres. Each line of the output is a step, an ID and a name.

import pg from 'pg';

const client = new pg.Client();
await client.connect();
const inserted = await client.query('INSERT INTO customers (name) VALUES ($1) RETURNING id', ['Ada']);
const ada = inserted.rows[0].id; // a string

console.log('insert', ada, 'Ada');

const { rows } = await client.query(
  'INSERT INTO customers (name) SELECT unnest($1::text[]) RETURNING id, name',
  [['Grace', 'Edsger']],
);

for (const { id, name } of rows) console.log('bulk', id, name);

const names = ['Barbara', 'Donald', 'Alan'];
const block = await client.query('SELECT snowflake_reserve($1) AS first', [names.length]);
const ids = names.map((_, n) => BigInt(block.rows[0].first) + BigInt(n));
await client.query('INSERT INTO customers (id, name) SELECT * FROM unnest($1::bigint[], $2::text[])', [ids, names]);

names.forEach((name, n) => console.log('block', String(ids[n]), name));

const query = 'SELECT id, name FROM customers ORDER BY id';
for (const { id, name } of (await client.query(query)).rows) console.log('read', id, name);

pg.types.setTypeParser(pg.types.builtins.INT8, Number); // rounds IDs

for (const { id, name } of (await client.query(query)).rows) console.log('trap', id, name);

pg.types.setTypeParser(pg.types.builtins.INT8, BigInt);

for (const { id, name } of (await client.query(query)).rows) console.log('right', String(id), name);

const aggregates = 'SELECT count(*), array_agg(id) AS ids FROM customers';
const [{ count, ids: strings }] = (await client.query(aggregates)).rows;
console.log('type', typeof count, 'count');
console.log('type', typeof strings[0], 'array');
try {
  JSON.stringify({ id: ids[0] });
} catch (error) {
  console.log('refused', error.name, names[0]);
}
console.log('right', JSON.parse(JSON.stringify({ id: String(ids[0]) })).id, names[0]);

const [{ list }] = (await client.query('SELECT json_agg(customers) AS list FROM customers')).rows;
for (const { id, name } of list) console.log('json', id, name);

const texts = "SELECT json_agg(json_build_object('id', id::text, 'name', name)) AS list FROM customers";
for (const { id, name } of (await client.query(texts)).rows[0].list) console.log('right', id, name);
await client.end();
