-- Every error of a statement on a running server, with its SQLSTATE; and that the session goes on.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- 55000: nothing issued in this session yet.
SELECT snowflake_currval();
\echo :SQLSTATE

-- 22023: a count out of range.
SELECT snowflake_nextval_batch(0);
\echo :SQLSTATE
SELECT count(*) FROM snowflake_nextval_batch(-1);
\echo :SQLSTATE
SELECT snowflake_nextval_batch(10000001);
\echo :SQLSTATE
SELECT snowflake_nextval_batch(2147483647);
\echo :SQLSTATE
SELECT snowflake_reserve(0);
\echo :SQLSTATE
SELECT snowflake_reserve(-2147483648);
\echo :SQLSTATE
SELECT snowflake_reserve(4097);
\echo :SQLSTATE
-- A refused count has issued nothing.
SELECT snowflake_currval();
\echo :SQLSTATE
SELECT snowflake_nextval() > 0 AS issued, snowflake_reserve(4096) > 0 AS reserved;

-- 22003: no ID.
SELECT snowflake_decode(-1);
\echo :SQLSTATE
SELECT * FROM snowflake_decode(-9223372036854775808);
\echo :SQLSTATE
SELECT snowflake_describe(-1);
\echo :SQLSTATE
SELECT snowflake_timestamp(-1);
\echo :SQLSTATE
SELECT snowflake_timestamp(0) IS NOT NULL AS goes_on;

-- 22023: a part that does not fit its field.
SELECT snowflake_encode('2024-01-01', 1024, 0);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', -1, 0);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 0, 4096);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 0, -1);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 0, 0, 1);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 0, 0, -1);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 2147483647, 2147483647, 2147483647);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 1023, 4095) AS goes_on;

-- 22023: a time outside the layout's: by a microsecond, by a millisecond, and far away on both sides.
SELECT snowflake_encode('2010-11-04 01:42:54.656999Z', 0, 0);
\echo :SQLSTATE
SELECT snowflake_encode('2080-07-10 17:30:30.209Z', 0, 0);
\echo :SQLSTATE
SELECT snowflake_encode('infinity', 0, 0);
\echo :SQLSTATE
SELECT snowflake_min_id('2010-11-04 01:42:54.656999Z');
\echo :SQLSTATE
SELECT snowflake_min_id('4714-11-24 00:00:00Z BC');
\echo :SQLSTATE
SELECT snowflake_min_id('infinity');
\echo :SQLSTATE
SELECT snowflake_max_id('2080-07-10 17:30:30.209Z');
\echo :SQLSTATE
SELECT snowflake_max_id('294276-12-31 23:59:59.999999Z');
\echo :SQLSTATE
SELECT snowflake_max_id('-infinity');
\echo :SQLSTATE
SELECT snowflake_min_id('2010-11-04 01:42:54.657Z') AS goes_on;

-- Several things wrong: the first one is named.
SELECT snowflake_encode('1999-01-01', 5000, 5000);
\echo :SQLSTATE

-- 42883: there is no such function, rather than a number cut to fit.
SELECT snowflake_nextval_batch(10::bigint);
\echo :SQLSTATE
SELECT snowflake_decode(1.5);
\echo :SQLSTATE
SELECT snowflake_decode(9223372036854775808);
\echo :SQLSTATE

-- Times in messages are in UTC and ISO 8601 whatever the session displays.
SET timezone = 'Asia/Kathmandu';
SET datestyle = 'German';
SELECT snowflake_min_id('01.01.1999');
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- They can be caught like any other, by name, and the rest of the transaction stands.
DO $$
BEGIN
    PERFORM snowflake_decode(-1);
EXCEPTION WHEN numeric_value_out_of_range THEN
    RAISE NOTICE 'caught %: %', SQLSTATE, SQLERRM;
END $$;
BEGIN;
CREATE TEMPORARY TABLE kept AS SELECT snowflake_nextval() AS id;
SAVEPOINT before;
SELECT snowflake_reserve(4097);
SELECT snowflake_nextval();
\echo :SQLSTATE
ROLLBACK TO before;
INSERT INTO kept SELECT snowflake_nextval();
COMMIT;
SELECT count(DISTINCT id) FROM kept;
