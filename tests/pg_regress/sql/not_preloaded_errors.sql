-- A server that does not preload the library has neither settings nor shared memory: every function says so.
SELECT snowflake_nextval();
\echo :SQLSTATE
SELECT snowflake_nextval_batch(5);
\echo :SQLSTATE
SELECT count(*) FROM snowflake_nextval_batch(5);
\echo :SQLSTATE
SELECT snowflake_reserve(5);
\echo :SQLSTATE
SELECT snowflake_currval();
\echo :SQLSTATE
SELECT snowflake_decode(1541815603606036480);
\echo :SQLSTATE
SELECT * FROM snowflake_decode(1541815603606036480);
\echo :SQLSTATE
SELECT snowflake_describe(1541815603606036480);
\echo :SQLSTATE
SELECT snowflake_timestamp(1541815603606036480);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 1, 0);
\echo :SQLSTATE
SELECT snowflake_min_id('2024-01-01');
\echo :SQLSTATE
SELECT snowflake_max_id('2024-01-01');
\echo :SQLSTATE
SELECT snowflake_first_id_from('2024-01-01');
\echo :SQLSTATE
SELECT snowflake_last_id_before('2024-01-01');
\echo :SQLSTATE
SELECT snowflake_between(1541815603606036480, '2022-06-28', '2022-06-29');
\echo :SQLSTATE
CREATE TEMPORARY TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text);
INSERT INTO orders (customer) VALUES ('Ada');
\echo :SQLSTATE
-- In a query that is only planned, too.
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_between(id, '2022-06-28', '2022-06-29');
\echo :SQLSTATE

-- A session cannot make up for it: not by loading the library, and not by a number of its own.
LOAD 'snowflake_pg';
SELECT snowflake_nextval();
\echo :SQLSTATE
SET snowflake_pg.worker_id = 5;
SELECT snowflake_nextval();
\echo :SQLSTATE
SELECT count(*) AS settings FROM pg_settings WHERE name LIKE 'snowflake_pg.%' AND name <> 'snowflake_pg.worker_id';
SELECT 1 AS goes_on;
SELECT snowflake_accept_clock();
\echo :SQLSTATE
SELECT snowflake_set_mark(1);
\echo :SQLSTATE
