// Runs the blocks of docs/clients.md for Knex. Each line of the output is a step, an ID and a name.

import knex from 'knex';

const db = knex({ client: 'pg', connection: {} });
await db.schema.createTable('customers', (table) => {
  table.bigInteger('id').primary().defaultTo(db.raw('snowflake_nextval()'));
  table.text('name').notNullable();
});
const [ada] = await db('customers').insert({ name: 'Ada' }).returning('id');

console.log('insert', ada.id, 'Ada');

const rows = await db('customers').insert([{ name: 'Grace' }, { name: 'Edsger' }]).returning(['id', 'name']);

for (const { id, name } of rows) console.log('bulk', id, name);

const names = ['Barbara', 'Donald', 'Alan'];
const block = await db.first(db.raw('snowflake_reserve(?) AS first', [names.length]));
const values = names.map((name, n) => ({ id: BigInt(block.first) + BigInt(n), name }));
await db.batchInsert('customers', values);

for (const { id, name } of values) console.log('block', String(id), name);

for (const { id, name } of await db('customers').orderBy('id')) console.log('read', id, name);

const keys = await db.batchInsert('customers', [{ name: 'Niklaus' }, { name: 'Tony' }]); // no keys

['Niklaus', 'Tony'].forEach((name, n) => console.log('trap', keys[n]?.id, name));

const returned = await db.batchInsert('customers', [{ name: 'Kathleen' }, { name: 'Frances' }]).returning(['id', 'name']);

for (const { id, name } of returned) console.log('right', id, name);
await db.destroy();
