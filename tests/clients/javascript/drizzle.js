// Runs the blocks of docs/clients.md for Drizzle. Each line of the output is a step, an ID and a name.

import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { bigint, pgTable, text } from 'drizzle-orm/pg-core';
import pg from 'pg';

const customers = pgTable('customers', {
  id: bigint('id', { mode: 'bigint' }).primaryKey().default(sql`snowflake_nextval()`),
  name: text('name').notNull(),
});

const pool = new pg.Pool();
const db = drizzle(pool);
const [ada] = await db.insert(customers).values({ name: 'Ada' }).returning();

console.log('insert', String(ada.id), ada.name);
try {
  JSON.stringify(ada);
} catch (error) {
  console.log('refused', error.name, ada.name);
}

const rows = await db.insert(customers).values([{ name: 'Grace' }, { name: 'Edsger' }]).returning();

for (const { id, name } of rows) console.log('bulk', String(id), name);

const names = ['Barbara', 'Donald', 'Alan'];
const block = await db.execute(sql`SELECT snowflake_reserve(${names.length}) AS first`);
const first = BigInt(block.rows[0].first);
const values = names.map((name, n) => ({ id: first + BigInt(n), name }));
await db.insert(customers).values(values);

for (const { id, name } of values) console.log('block', String(id), name);

for (const { id, name } of await db.select().from(customers).orderBy(customers.id)) console.log('read', String(id), name);

const rounding = pgTable('customers', {
  id: bigint('id', { mode: 'number' }).primaryKey(), // rounds IDs
  name: text('name').notNull(),
});

for (const { id, name } of await db.select().from(rounding)) console.log('trap', String(id), name);
await pool.end();
