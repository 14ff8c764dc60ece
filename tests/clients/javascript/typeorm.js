// Runs the blocks of docs/clients.md for TypeORM. Each line of the output is a step, an ID and a name.

import { DataSource, EntitySchema } from 'typeorm';

const Customer = new EntitySchema({
  name: 'customers',
  columns: {
    id: { type: 'bigint', primary: true, default: () => 'snowflake_nextval()' },
    name: { type: 'text' },
  },
});

const options = { type: 'postgres', host: process.env.PGHOST, username: 'postgres', database: 'postgres', entities: [Customer] };
const source = await new DataSource({ ...options, synchronize: true }).initialize();
const customers = source.getRepository(Customer);
const ada = await customers.save({ name: 'Ada' });

console.log('insert', ada.id, ada.name);

const rows = await customers.save([{ name: 'Grace' }, { name: 'Edsger' }]);

for (const { id, name } of rows) console.log('bulk', id, name);

const names = ['Barbara', 'Donald', 'Alan'];
const [{ first }] = await source.query('SELECT snowflake_reserve($1) AS first', [names.length]);
const values = names.map((name, n) => ({ id: String(BigInt(first) + BigInt(n)), name }));
await customers.insert(values);

for (const { id, name } of values) console.log('block', id, name);

for (const { id, name } of await customers.find({ order: { id: 'ASC' } })) console.log('read', id, name);
await source.destroy();

const rounding = await new DataSource({ ...options, parseInt8: true }).initialize(); // rounds IDs

for (const { id, name } of await rounding.getRepository(Customer).find()) console.log('trap', String(id), name);
await rounding.destroy();
