-- Without a number of its own a server issues nothing, and decodes as ever.
SET timezone = 'UTC';
SET datestyle = 'ISO';

SELECT snowflake_nextval();
\echo :SQLSTATE
SELECT snowflake_nextval_batch(5);
\echo :SQLSTATE
SELECT count(*) FROM snowflake_nextval_batch(5);
\echo :SQLSTATE
SELECT snowflake_reserve(5);
\echo :SQLSTATE
CREATE TEMPORARY TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text);
INSERT INTO orders (customer) VALUES ('Ada');
\echo :SQLSTATE
-- Each time anew, in this session as in a fresh one.
SELECT snowflake_nextval();
\echo :SQLSTATE
\c -
SELECT snowflake_nextval();
\echo :SQLSTATE
SELECT snowflake_currval();
\echo :SQLSTATE
SELECT snowflake_nextval_batch(0);
\echo :SQLSTATE
SELECT snowflake_reserve(0);
\echo :SQLSTATE

SHOW snowflake_pg.worker_id;
SELECT setting, boot_val, source FROM pg_settings WHERE name = 'snowflake_pg.worker_id';
SET snowflake_pg.worker_id = 5;
\echo :SQLSTATE

-- What needs no new ID works.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SELECT * FROM snowflake_decode(1541815603606036480);
SELECT snowflake_describe(1541815603606036480) ->> 'worker_id' AS worker_id, snowflake_timestamp(1541815603606036480);
SELECT snowflake_encode('2022-06-28 16:07:40.105Z', 378, 0), snowflake_min_id('2022-06-28 16:07:40.105Z'),
       snowflake_max_id('2022-06-28 16:07:40.105Z');
SELECT snowflake_between(1541815603606036480, '2022-06-28', '2022-06-29');
