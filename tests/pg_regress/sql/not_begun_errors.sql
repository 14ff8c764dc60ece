-- Before its epoch a server issues nothing, rather than IDs that come again.
SET timezone = 'UTC';
SET datestyle = 'ISO';

SELECT snowflake_nextval();
\echo :SQLSTATE
SELECT snowflake_nextval_batch(5);
\echo :SQLSTATE
SELECT snowflake_reserve(5);
\echo :SQLSTATE
CREATE TEMPORARY TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
INSERT INTO orders DEFAULT VALUES;
\echo :SQLSTATE
SELECT snowflake_currval();
\echo :SQLSTATE

SELECT * FROM snowflake_decode(4194304);
SELECT snowflake_min_id('2024-01-01');
\echo :SQLSTATE
