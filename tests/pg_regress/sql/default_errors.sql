-- Every error that SQL can meet on a running server: SQLSTATE, message, detail and hint; and that the next statement works.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake_pg;
RESET client_min_messages;
SET timezone = 'UTC';
SET datestyle = 'ISO';
\set VERBOSITY default

-- 55000: nothing issued in this session yet.
SELECT snowflake_currval();
\echo :LAST_ERROR_SQLSTATE

-- 22023: a count out of range.
SELECT snowflake_nextval_batch(0);
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM snowflake_nextval_batch(-1);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_nextval_batch(10000001);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_reserve(0);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_reserve(-2147483648);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_reserve(4097);
\echo :LAST_ERROR_SQLSTATE

-- A refused count has issued nothing.
SELECT snowflake_currval();
SELECT snowflake_nextval() > 0 AS issued, snowflake_reserve(4096) > 0 AS reserved;
SELECT count(*) FROM snowflake_nextval_batch(3);

-- 22003: no ID.
SELECT snowflake_decode(-1);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_decode(-9223372036854775808);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_describe(-1);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_timestamp(-1);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_timestamp(0) AS works;

-- 22023: a part that does not fit its field.
SELECT snowflake_encode('2024-01-01', 1024, 0);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_encode('2024-01-01', -1, 0);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_encode('2024-01-01', 0, 4096);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_encode('2024-01-01', 0, -1);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_encode('2024-01-01', 0, 0, 1);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_encode('2024-01-01', 0, 0, -1);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_encode('2024-01-01', 2147483647, 2147483647, 2147483647);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_encode('2024-01-01', 1023, 4095) AS works;

-- 22023: an instant outside the layout's time: a microsecond before, a microsecond after, and far away on both sides.
SELECT snowflake_encode('2010-11-04 01:42:54.656999Z', 0, 0);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_encode('2080-07-10 17:30:30.209Z', 0, 0);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_min_id('2010-11-04 01:42:54.656999Z');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_min_id('infinity');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_max_id('2080-07-10 17:30:30.209Z');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_max_id('-infinity');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_min_id('2010-11-04 01:42:54.657Z') AS works;

-- The detail is in UTC whatever the session's zone and style.
SET timezone = 'Asia/Kathmandu';
SET datestyle = 'German';
SELECT snowflake_min_id('01.01.1999');
RESET timezone;
RESET datestyle;

-- The extension's errors can be caught like any other, and the rest of the transaction stands.
DO $$
BEGIN
    PERFORM snowflake_decode(-1);
EXCEPTION WHEN numeric_value_out_of_range THEN
    RAISE NOTICE 'caught %', SQLSTATE;
END $$;
BEGIN;
SAVEPOINT before;
SELECT snowflake_reserve(4097);
SELECT snowflake_nextval() > 0 AS issued;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO before;
SELECT snowflake_nextval() > 0 AS issued;
COMMIT;

-- An error of somebody else's in the middle of a batch.
SELECT 1 / (4 - position) FROM snowflake_nextval_batch(10) WITH ORDINALITY AS drawn (id, position);
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM snowflake_nextval_batch(10);
SELECT snowflake_nextval() > 0 AS issued;
