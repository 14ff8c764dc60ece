-- A layout whose time ended long ago issues nothing any more, and decodes as ever.
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
CREATE TEMPORARY TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
INSERT INTO orders DEFAULT VALUES;
\echo :SQLSTATE
SELECT snowflake_currval();
\echo :SQLSTATE

-- 2^20 seconds are 12 days, 3 hours, 16 minutes and 16 seconds.
SELECT * FROM snowflake_decode(17179869183);
INSERT INTO orders VALUES (snowflake_encode('2010-11-16 04:59:09.657Z', 15, 1023)) RETURNING id;
SELECT snowflake_encode('2010-11-16 04:59:10.657Z', 0, 0);
\echo :SQLSTATE
