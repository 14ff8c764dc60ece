// Runs the blocks of docs/clients.md for Prisma. Each line of the output is a step, an ID and a name.

import { PrismaPg } from '@prisma/adapter-pg';
import prismaClient from '../generated/index.js';

const { PrismaClient } = prismaClient;

const prisma = new PrismaClient({ adapter: new PrismaPg({}) });
const ada = await prisma.customer.create({ data: { name: 'Ada' } });

console.log('insert', String(ada.id), ada.name);

const rows = await prisma.customer.createManyAndReturn({ data: [{ name: 'Grace' }, { name: 'Edsger' }] });

for (const { id, name } of rows) console.log('bulk', String(id), name);

const names = ['Barbara', 'Donald', 'Alan'];
const [{ first }] = await prisma.$queryRaw`SELECT snowflake_reserve(${names.length}::integer) AS first`;
const data = names.map((name, n) => ({ id: first + BigInt(n), name }));
await prisma.customer.createMany({ data });

for (const { id, name } of data) console.log('block', String(id), name);

for (const { id, name } of await prisma.customer.findMany({ orderBy: { id: 'asc' } })) console.log('read', String(id), name);

try {
  JSON.stringify(ada);
} catch (error) {
  console.log('refused', error.constructor.name, ada.name);
}

const rounded = JSON.stringify(data, (key, value) => (typeof value === 'bigint' ? Number(value) : value));

for (const { id, name } of JSON.parse(rounded)) console.log('trap', String(id), name);

const exact = JSON.stringify(data, (key, value) => (typeof value === 'bigint' ? String(value) : value));

for (const { id, name } of JSON.parse(exact)) console.log('right', id, name);
await prisma.$disconnect();
