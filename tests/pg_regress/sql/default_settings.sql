-- The settings as PostgreSQL knows them, and who may change them.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake_pg;
RESET client_min_messages;
\set VERBOSITY default
SELECT current_database() AS database \gset

SELECT name, vartype, unit, context, boot_val, min_val, max_val, enumvals
  FROM pg_settings WHERE name LIKE 'snowflake_pg.%' ORDER BY name;
SELECT name, category, short_desc, extra_desc
  FROM pg_settings WHERE name LIKE 'snowflake_pg.%' ORDER BY name;
SELECT name, setting, reset_val, source, pending_restart
  FROM pg_settings WHERE name LIKE 'snowflake_pg.%' ORDER BY name;
SHOW snowflake_pg.worker_id;
SHOW snowflake_pg.max_ahead;
SELECT current_setting('snowflake_pg.layout');

-- The identity is the server's: no session, role or database has another.
SET snowflake_pg.worker_id = 2;
\echo :LAST_ERROR_SQLSTATE
SET snowflake_pg.datacenter_id = 2;
\echo :LAST_ERROR_SQLSTATE
SET snowflake_pg.layout = '41:11:11';
\echo :LAST_ERROR_SQLSTATE
SET snowflake_pg.epoch = '0';
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SET LOCAL snowflake_pg.worker_id = 2;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
SELECT set_config('snowflake_pg.worker_id', '2', false);
\echo :LAST_ERROR_SQLSTATE
ALTER ROLE postgres SET snowflake_pg.worker_id = 2;
\echo :LAST_ERROR_SQLSTATE
ALTER ROLE ALL SET snowflake_pg.layout = '41:11:11';
\echo :LAST_ERROR_SQLSTATE
ALTER DATABASE :"database" SET snowflake_pg.worker_id = 2;
\echo :LAST_ERROR_SQLSTATE
ALTER DATABASE :"database" SET snowflake_pg.epoch = '0';
\echo :LAST_ERROR_SQLSTATE
CREATE FUNCTION other_worker() RETURNS bigint LANGUAGE sql SET snowflake_pg.worker_id = 2 RETURN snowflake_nextval();
\echo :LAST_ERROR_SQLSTATE
SELECT worker_id FROM snowflake_decode(snowflake_nextval());

-- The two others change with the configuration, not in a session.
SET snowflake_pg.max_ahead = '1s';
\echo :LAST_ERROR_SQLSTATE
SET snowflake_pg.sequence_start = 'random';
\echo :LAST_ERROR_SQLSTATE
ALTER ROLE postgres SET snowflake_pg.max_ahead = '1s';
\echo :LAST_ERROR_SQLSTATE

-- What cannot be right is refused when it is written, not found out at the next start.
ALTER SYSTEM SET snowflake_pg.layout = 'wide';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.layout = '41:10';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.layout = '44:10:12';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.layout = '41:10:0';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.layout = '41:10:12@2ms';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.epoch = 'yesterday';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.epoch = '2020-01-01 00:00:00';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.epoch = '2020-01-01T00:00:00.0001Z';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.epoch = '2200-01-01T00:00:00Z';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.epoch = '-1';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.worker_id = 'one';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.worker_id = -2;
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.datacenter_id = -1;
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.max_ahead = '1ms';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.max_ahead = '11s';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.max_ahead = 'long';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.sequence_start = 'maybe';
\echo :LAST_ERROR_SQLSTATE

-- A misspelt name is refused too, where PostgreSQL would make up a setting of that name.
SET snowflake_pg.workerid = 3;
\echo :LAST_ERROR_SQLSTATE
SHOW snowflake_pg.workerid;
\echo :LAST_ERROR_SQLSTATE

-- What is right is accepted, at both ends of a range, and nothing of this file stays.
ALTER SYSTEM SET snowflake_pg.layout = 'sonyflake';
ALTER SYSTEM SET snowflake_pg.layout = '41:5:5:12@10ms';
ALTER SYSTEM SET snowflake_pg.epoch = '2020-01-01T00:00:00Z';
ALTER SYSTEM SET snowflake_pg.epoch = '1577836800000';
ALTER SYSTEM SET snowflake_pg.max_ahead = '2ms';
ALTER SYSTEM SET snowflake_pg.max_ahead = '10s';
ALTER SYSTEM SET snowflake_pg.sequence_start = 'random';
ALTER SYSTEM RESET ALL;
