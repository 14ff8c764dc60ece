// Runs the blocks of docs/clients.md for Kysely. Each line of the output is a step, an ID and a name.

import { Kysely, PostgresDialect, sql } from 'kysely';
import { jsonArrayFrom } from 'kysely/helpers/postgres';
import pg from 'pg';

const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool() }) });
await db.schema
  .createTable('customers')
  .addColumn('id', 'bigint', (column) => column.primaryKey().defaultTo(sql`snowflake_nextval()`))
  .addColumn('name', 'text', (column) => column.notNull())
  .execute();
const ada = await db.insertInto('customers').values({ name: 'Ada' }).returning('id').executeTakeFirstOrThrow();

console.log('insert', ada.id, 'Ada');

const rows = await db
  .insertInto('customers')
  .values([{ name: 'Grace' }, { name: 'Edsger' }])
  .returning(['id', 'name'])
  .execute();

for (const { id, name } of rows) console.log('bulk', id, name);

const names = ['Barbara', 'Donald', 'Alan'];
const block = await sql`SELECT snowflake_reserve(${names.length}) AS first`.execute(db);
const first = BigInt(block.rows[0].first);
const values = names.map((name, n) => ({ id: first + BigInt(n), name }));
await db.insertInto('customers').values(values).execute();

for (const { id, name } of values) console.log('block', String(id), name);

for (const { id, name } of await db.selectFrom('customers').selectAll().orderBy('id').execute()) console.log('read', id, name);

const { list } = await db
  .selectNoFrom((eb) => jsonArrayFrom(eb.selectFrom('customers').select(['id', 'name'])).as('list')) // rounds IDs
  .executeTakeFirstOrThrow();

for (const { id, name } of list) console.log('trap', String(id), name);

const right = await db
  .selectNoFrom((eb) =>
    jsonArrayFrom(eb.selectFrom('customers').select([sql`id::text`.as('id'), 'name'])).as('list'),
  )
  .executeTakeFirstOrThrow();

for (const { id, name } of right.list) console.log('right', id, name);
await db.destroy();
