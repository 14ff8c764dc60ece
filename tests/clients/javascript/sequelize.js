// Runs the blocks of docs/clients.md for Sequelize. Each line of the output is a step, an ID and a name.

import { DataTypes, Sequelize } from 'sequelize';

const sequelize = new Sequelize('postgres', 'postgres', '', { dialect: 'postgres', host: process.env.PGHOST, logging: false });
const Customer = sequelize.define(
  'customers',
  {
    id: { type: DataTypes.BIGINT, primaryKey: true, defaultValue: sequelize.literal('snowflake_nextval()') },
    name: { type: DataTypes.TEXT, allowNull: false },
  },
  { timestamps: false },
);
await Customer.sync();
const ada = await Customer.create({ name: 'Ada' });

console.log('insert', ada.id, ada.name);

const rows = await Customer.bulkCreate([{ name: 'Grace' }, { name: 'Edsger' }], { returning: true });

for (const { id, name } of rows) console.log('bulk', id, name);

const names = ['Barbara', 'Donald', 'Alan'];
const [[{ first }]] = await sequelize.query('SELECT snowflake_reserve($1) AS first', { bind: [names.length] });
const values = names.map((name, n) => ({ id: String(BigInt(first) + BigInt(n)), name }));
await Customer.bulkCreate(values);

for (const { id, name } of values) console.log('block', id, name);

for (const { id, name } of await Customer.findAll({ order: ['id'] })) console.log('read', id, name);

const Account = sequelize.define('accounts', { name: DataTypes.TEXT }, { timestamps: false }); // id is SERIAL
await Account.sync();
const tony = await Account.create({ name: 'Tony' });

console.log('trap', tony.id, tony.name);
await sequelize.close();
