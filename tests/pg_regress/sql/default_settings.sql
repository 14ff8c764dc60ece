-- The settings as PostgreSQL knows them, and who may change them.
-- The output is unaligned and has no row counts, so that a new setting does not change other lines.
\pset format unaligned
\pset footer off
SELECT current_database() AS database \gset

SELECT name, vartype, unit, context, boot_val, min_val, max_val, enumvals
  FROM pg_settings WHERE name LIKE 'snowflake_pg.%' ORDER BY name;
SELECT name, category, short_desc, extra_desc
  FROM pg_settings WHERE name LIKE 'snowflake_pg.%' ORDER BY name;
SELECT name, setting, reset_val, source, pending_restart
  FROM pg_settings WHERE name LIKE 'snowflake_pg.%' AND name <> 'snowflake_pg.witness_directory' ORDER BY name;
SHOW snowflake_pg.worker_id;
SHOW snowflake_pg.max_ahead;
SELECT current_setting('snowflake_pg.layout'), current_setting('snowflake_pg.sequence_start');

-- These four settings identify the server. They cannot be set for a session, transaction, function, role or database.
SET snowflake_pg.worker_id = 2;
\echo :SQLSTATE
SET snowflake_pg.datacenter_id = 2;
\echo :SQLSTATE
SET snowflake_pg.layout = '41:11:11';
\echo :SQLSTATE
SET snowflake_pg.epoch = '0';
\echo :SQLSTATE
BEGIN;
SET LOCAL snowflake_pg.worker_id = 2;
\echo :SQLSTATE
ROLLBACK;
BEGIN;
SET LOCAL snowflake_pg.datacenter_id = 2;
\echo :SQLSTATE
ROLLBACK;
BEGIN;
SET LOCAL snowflake_pg.layout = '41:11:11';
\echo :SQLSTATE
ROLLBACK;
BEGIN;
SET LOCAL snowflake_pg.epoch = '0';
\echo :SQLSTATE
ROLLBACK;
SELECT set_config('snowflake_pg.worker_id', '2', false);
\echo :SQLSTATE
SELECT set_config('snowflake_pg.datacenter_id', '2', false);
\echo :SQLSTATE
SELECT set_config('snowflake_pg.layout', '41:11:11', true);
\echo :SQLSTATE
SELECT set_config('snowflake_pg.epoch', '0', true);
\echo :SQLSTATE
UPDATE pg_settings SET setting = '2' WHERE name = 'snowflake_pg.worker_id';
\echo :SQLSTATE
CREATE FUNCTION other_worker() RETURNS bigint LANGUAGE sql SET snowflake_pg.worker_id = 2 RETURN snowflake_nextval();
\echo :SQLSTATE
ALTER ROLE CURRENT_USER SET snowflake_pg.worker_id = 2;
\echo :SQLSTATE
ALTER ROLE CURRENT_USER SET snowflake_pg.datacenter_id = 2;
\echo :SQLSTATE
ALTER ROLE ALL SET snowflake_pg.layout = '41:11:11';
\echo :SQLSTATE
ALTER ROLE CURRENT_USER IN DATABASE :"database" SET snowflake_pg.epoch = '0';
\echo :SQLSTATE
ALTER DATABASE :"database" SET snowflake_pg.worker_id = 2;
\echo :SQLSTATE
ALTER DATABASE :"database" SET snowflake_pg.datacenter_id = 2;
\echo :SQLSTATE
ALTER DATABASE :"database" SET snowflake_pg.layout = '41:11:11';
\echo :SQLSTATE
ALTER DATABASE :"database" SET snowflake_pg.epoch = '0';
\echo :SQLSTATE
-- Not even one that was granted the right.
CREATE ROLE clerk;
GRANT SET ON PARAMETER snowflake_pg.worker_id TO clerk;
SET ROLE clerk;
SET snowflake_pg.worker_id = 2;
\echo :SQLSTATE
RESET ROLE;
DROP OWNED BY clerk;
DROP ROLE clerk;
SELECT count(*) AS stored_for_roles_or_databases
  FROM pg_db_role_setting, unnest(setconfig) AS setting WHERE setting LIKE 'snowflake%';
SELECT worker_id FROM snowflake_decode(snowflake_nextval());

-- These settings can be changed only by reloading the configuration, for all sessions.
SET snowflake_pg.max_ahead = '1s';
\echo :SQLSTATE
SET snowflake_pg.sequence_start = 'random';
\echo :SQLSTATE
ALTER ROLE CURRENT_USER SET snowflake_pg.max_ahead = '1s';
\echo :SQLSTATE
ALTER DATABASE :"database" SET snowflake_pg.sequence_start = 'random';
\echo :SQLSTATE

-- What cannot be right is refused when it is written, not found out at the next start.
ALTER SYSTEM SET snowflake_pg.layout = '';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_pg.layout = 'bad';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.layout = '41:10';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.layout = '44:10:12';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.layout = '41:10:0';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.layout = '10:32:21';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.layout = '41:10:12@2ms';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.epoch = 'yesterday';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.epoch = '2020-01-01 00:00:00';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.epoch = '2020-01-01';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.epoch = '2020-01-01T00:00:00.0001Z';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.epoch = '2200-01-01T00:00:00Z';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.epoch = '-1';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.epoch = '7258118400000';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.worker_id = 'one';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.worker_id = -2;
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.datacenter_id = -1;
\echo :SQLSTATE
-- The wording of this error depends on the version of PostgreSQL if the setting has a unit.
\set VERBOSITY sqlstate
ALTER SYSTEM SET snowflake_pg.max_ahead = '1ms';
ALTER SYSTEM SET snowflake_pg.max_ahead = '11s';
\set VERBOSITY default
ALTER SYSTEM SET snowflake_pg.max_ahead = 'long';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.max_ahead = '5 parsecs';
\echo :SQLSTATE
ALTER SYSTEM SET snowflake_pg.sequence_start = 'maybe';
\echo :SQLSTATE

-- A misspelt name is refused, where PostgreSQL would make up a setting of that name.
SET snowflake_pg.workerid = 3;
\echo :SQLSTATE
SHOW snowflake_pg.workerid;
\echo :SQLSTATE

-- What is right is accepted, at both ends of a range. Whether it is right together with the others is judged when the
-- server starts: a number may be meant for a layout that is written next.
ALTER SYSTEM SET snowflake_pg.layout = 'sonyflake';
ALTER SYSTEM SET snowflake_pg.layout = '41:5:5:12@10ms';
ALTER SYSTEM SET snowflake_pg.epoch = '2020-01-01T00:00:00Z';
ALTER SYSTEM SET snowflake_pg.epoch = '2020-01-01 01:00:00+01';
ALTER SYSTEM SET snowflake_pg.epoch = '0';
ALTER SYSTEM SET snowflake_pg.epoch = '7258118399999';
ALTER SYSTEM SET snowflake_pg.worker_id = 1024;
ALTER SYSTEM SET snowflake_pg.datacenter_id = 1;
ALTER SYSTEM SET snowflake_pg.max_ahead = '2ms';
ALTER SYSTEM SET snowflake_pg.max_ahead = '10s';
ALTER SYSTEM SET snowflake_pg.sequence_start = 'random';
ALTER SYSTEM SET snowflake_pg.sequence_start = 'ZERO';
SELECT name, setting FROM pg_file_settings
 WHERE sourcefile LIKE '%postgresql.auto.conf' AND name LIKE 'snowflake_pg.%' ORDER BY name;
-- Nothing of this file stays.
ALTER SYSTEM RESET ALL;
