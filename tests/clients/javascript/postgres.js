// Runs the blocks of docs/clients.md for Postgres.js. Each line of the output is a step, an ID and a name.

import postgres from 'postgres';

const sql = postgres({ types: { bigint: postgres.BigInt } });
const [ada] = await sql`INSERT INTO customers (name) VALUES (${'Ada'}) RETURNING id`;

console.log('insert', String(ada.id), 'Ada');

const rows = await sql`INSERT INTO customers ${sql([{ name: 'Grace' }, { name: 'Edsger' }])} RETURNING id, name`;

for (const { id, name } of rows) console.log('bulk', String(id), name);

const names = ['Barbara', 'Donald', 'Alan'];
const [{ first }] = await sql`SELECT snowflake_reserve(${names.length}) AS first`;
const customers = names.map((name, n) => ({ id: first + BigInt(n), name }));
await sql`INSERT INTO customers ${sql(customers)}`;

for (const { id, name } of customers) console.log('block', String(id), name);

for (const { id, name } of await sql`SELECT id, name FROM customers ORDER BY id`) console.log('read', String(id), name);

const [{ list }] = await sql`SELECT json_agg(customers) AS list FROM customers`; // JSON.parse rounds the IDs

for (const { id, name } of list) console.log('trap', String(id), name);

const [right] = await sql`
  SELECT json_agg(json_build_object('id', id::text, 'name', name)) AS list FROM customers`;

for (const { id, name } of right.list) console.log('right', id, name);
await sql.end();
