-- The guard of a table: which tables can have one, what it refuses, and its errors. A session with session_replication_role = replica
-- does what a subscription does.
SET timezone = 'UTC';
SET datestyle = 'ISO';
CREATE SCHEMA guarded;
GRANT USAGE ON SCHEMA guarded TO PUBLIC;
SET search_path = guarded, public;

-- The column is the one with the default, or the primary key, or the one that is named. The ID is the next one of this server.
CREATE TABLE by_default (tenant bigint, id bigint DEFAULT snowflake_nextval(), PRIMARY KEY (tenant, id));
CREATE TABLE by_primary_key (id bigint PRIMARY KEY, parent bigint);
CREATE TABLE by_both (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), revision bigint DEFAULT snowflake_nextval());
CREATE DOMAIN order_id AS bigint;
CREATE TABLE "by Name" ("Id" order_id, other bigint);
SELECT snowflake_nextval() AS before \gset
SELECT snowflake_guard('by_default');
SELECT snowflake_guard('by_primary_key'), snowflake_guard('by_both'), snowflake_guard('"by Name"', key => 'Id');
SELECT snowflake_nextval() AS after \gset
CREATE VIEW guards AS
    SELECT tgrelid::regclass AS table, split_part(encode(tgargs, 'escape'), '\000', 1) AS key, tgenabled AS enabled,
           split_part(encode(tgargs, 'escape'), '\000', 2)::bigint AS first, tgparentid <> 0 AS inherited
      FROM pg_trigger WHERE tgname = 'snowflake_guard' ORDER BY 1;
SELECT "table", key, enabled, first > :before AND first <= :after AS next FROM guards;
SELECT regexp_replace(pg_get_triggerdef(oid), '[0-9]{15,}', '...') AS definition FROM pg_trigger WHERE tgrelid = 'by_default'::regclass;

-- A second call changes nothing, and enables a guard that is disabled.
CREATE TEMPORARY TABLE noted AS SELECT * FROM guards;
ALTER TABLE by_default DISABLE TRIGGER snowflake_guard;
ALTER TABLE by_both ENABLE TRIGGER snowflake_guard;
SELECT snowflake_guard('by_default'), snowflake_guard('by_primary_key'), snowflake_guard('by_both'), snowflake_guard('"by Name"');
SELECT count(*) AS as_before FROM (SELECT * FROM guards INTERSECT SELECT * FROM noted) AS same;
-- Another column keeps the ID.
SELECT snowflake_guard('by_primary_key', 'parent');
SELECT g.key, g.enabled, g.first = n.first AS same_id FROM guards g JOIN noted n USING ("table") WHERE "table" = 'by_primary_key'::regclass;
DROP TRIGGER snowflake_guard ON by_primary_key;
SELECT count(*) FROM guards;

-- What it refuses: IDs of worker ID 1 from the next one on. Local rows are not even looked at.
SELECT snowflake_stat_reset();
SELECT snowflake_status.guard_refusals AS refusals FROM snowflake_status;
INSERT INTO by_both DEFAULT VALUES;
INSERT INTO by_both SELECT id + (1::bigint << 40), 0 FROM by_both;
SET session_replication_role = replica;
INSERT INTO by_both SELECT snowflake_nextval_batch(1), 0;
INSERT INTO by_both SELECT :before, 0;
INSERT INTO by_both SELECT snowflake_encode(now(), 2, 0), 0;
INSERT INTO by_both SELECT -1, 0;
INSERT INTO by_both VALUES (NULL, 0);
\echo :SQLSTATE
RESET session_replication_role;
-- As pg_dump writes it, so that the IDs are known.
CREATE TABLE restored (id bigint PRIMARY KEY);
CREATE TRIGGER snowflake_guard BEFORE INSERT ON restored FOR EACH ROW EXECUTE FUNCTION snowflake_guard_row('id', '1766614946411446272');
ALTER TABLE restored ENABLE REPLICA TRIGGER snowflake_guard;
INSERT INTO restored VALUES (snowflake_encode('2024-03-10', 1, 0));
SET session_replication_role = replica;
INSERT INTO restored VALUES (snowflake_encode('2024-03-09 23:59:59.999Z', 1, 4095));
INSERT INTO restored VALUES (snowflake_encode('2024-03-10 00:00Z', 1, 1));
\echo :SQLSTATE
INSERT INTO restored SELECT snowflake_encode('2024-03-10 00:00Z', worker, 0) FROM generate_series(2, 4) AS worker;
COPY restored FROM stdin;
1766614946411450370
\.
-- A column of another name.
ALTER TABLE restored RENAME COLUMN id TO order_id;
INSERT INTO restored VALUES (5);
\echo :SQLSTATE
SELECT snowflake_guard('restored');
INSERT INTO restored VALUES (5);
INSERT INTO restored VALUES (snowflake_encode('2024-03-10 00:00Z', 1, 1));
\echo :SQLSTATE
SELECT guard_refusals, last_guard_refusal_id, last_guard_refusal_at > now() - interval '1 minute' AS just_now FROM snowflake_status;
SELECT snowflake_stat_reset();
SELECT guard_refusals, last_guard_refusal_id, last_guard_refusal_at FROM snowflake_status;
-- A trigger that inserts a new row of this server while a replicated row is applied.
CREATE TABLE audit (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), order_id bigint);
SELECT snowflake_guard('audit');
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit (order_id) VALUES (NEW.order_id); RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT ON restored FOR EACH ROW EXECUTE FUNCTION note();
ALTER TABLE restored ENABLE REPLICA TRIGGER note;
INSERT INTO restored VALUES (6), (7);
SELECT count(*) AS audited FROM audit;
RESET session_replication_role;

-- Rows reach a partition directly or through the partitioned table, and new partitions are guarded, too.
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
CREATE TABLE events_old PARTITION OF events FOR VALUES FROM (0) TO (1000);
SELECT snowflake_guard('events_old');
SELECT snowflake_guard('events');
SELECT snowflake_guard('events_old');
CREATE TABLE events_new PARTITION OF events FOR VALUES FROM (1000) TO (MAXVALUE);
SELECT "table", enabled, inherited, first = min(first) OVER () AS same_id FROM guards WHERE "table"::text LIKE 'events%';
SET session_replication_role = replica;
INSERT INTO events SELECT snowflake_encode(now(), 2, 0);
\set VERBOSITY sqlstate
INSERT INTO events SELECT snowflake_max_id(now() + interval '1 minute') - 4095 - (1022 << 12);
INSERT INTO events_new SELECT snowflake_max_id(now() + interval '1 minute') - 4095 - (1022 << 12);
\set VERBOSITY default
RESET session_replication_role;
ALTER TABLE events DISABLE TRIGGER snowflake_guard;
SELECT snowflake_guard('events');
SELECT "table", enabled FROM guards WHERE "table"::text LIKE 'events%';

-- Errors.
SELECT snowflake_guard(NULL);
\echo :SQLSTATE
SELECT snowflake_guard(123456789);
\echo :SQLSTATE
SELECT snowflake_guard('nowhere');
\echo :SQLSTATE
CREATE VIEW shown AS SELECT * FROM by_both;
SELECT snowflake_guard('shown');
\echo :SQLSTATE
CREATE TEMPORARY TABLE passing (id bigint PRIMARY KEY);
DO $$
DECLARE
    detail text;
BEGIN
    PERFORM snowflake_guard('passing');
EXCEPTION WHEN wrong_object_type THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RAISE NOTICE '%', detail;
END $$;
CREATE SEQUENCE numbers;
SELECT snowflake_guard('numbers');
\echo :SQLSTATE
CREATE MATERIALIZED VIEW kept AS SELECT 1::bigint AS id;
SELECT snowflake_guard('kept', 'id');
\echo :SQLSTATE
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing;
CREATE FOREIGN TABLE abroad (id bigint) SERVER nowhere;
SELECT snowflake_guard('abroad', 'id');
\echo :SQLSTATE
SELECT snowflake_guard('by_both_pkey');
\echo :SQLSTATE
CREATE TABLE without_key (a bigint, b bigint);
SELECT snowflake_guard('without_key');
\echo :SQLSTATE
CREATE TABLE two_defaults (a bigint DEFAULT snowflake_nextval(), b bigint DEFAULT snowflake_nextval());
SELECT snowflake_guard('two_defaults');
\echo :SQLSTATE
CREATE TABLE small_key (id integer PRIMARY KEY);
SELECT snowflake_guard('small_key');
\echo :SQLSTATE
SELECT snowflake_guard('small_key', 'id');
\echo :SQLSTATE
SELECT snowflake_guard('small_key', 'ID');
\echo :SQLSTATE
SELECT snowflake_guard('small_key', 'ctid');
\echo :SQLSTATE
SELECT snowflake_guard('small_key', repeat('x', 100));
\echo :SQLSTATE
CREATE TABLE as_text (id snowflake_text PRIMARY KEY DEFAULT snowflake_to_text(snowflake_nextval()));
SELECT snowflake_guard('as_text');
\echo :SQLSTATE
SELECT snowflake_guard('pg_class', 'oid');
\echo :SQLSTATE
-- The function of the trigger is of no other use.
SELECT snowflake_guard_row();
\echo :SQLSTATE
CREATE TRIGGER wrong AFTER INSERT ON without_key FOR EACH ROW EXECUTE FUNCTION snowflake_guard_row('a', '1');
INSERT INTO without_key VALUES (1, 1);
\echo :SQLSTATE
DROP TRIGGER wrong ON without_key;
CREATE TRIGGER wrong BEFORE INSERT ON without_key FOR EACH ROW EXECUTE FUNCTION snowflake_guard_row('a', 'x');
ALTER TABLE without_key ENABLE ALWAYS TRIGGER wrong;
INSERT INTO without_key VALUES (1, 1);
SET session_replication_role = replica;
INSERT INTO without_key VALUES (1, 1);
\echo :SQLSTATE
RESET session_replication_role;
-- A trigger of this name that is not a guard stays.
CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER snowflake_guard BEFORE INSERT ON audit FOR EACH STATEMENT EXECUTE FUNCTION pass();
\echo :SQLSTATE
CREATE TRIGGER snowflake_guard BEFORE INSERT ON small_key FOR EACH STATEMENT EXECUTE FUNCTION pass();
ALTER TABLE small_key ALTER COLUMN id TYPE bigint;
SELECT snowflake_guard('small_key');
\echo :SQLSTATE

-- Only the owner, as with ALTER TABLE.
CREATE ROLE guard_clerk;
CREATE ROLE guard_owner;
CREATE ROLE guard_member;
GRANT guard_owner TO guard_member;
CREATE TABLE owned (id bigint PRIMARY KEY);
ALTER TABLE owned OWNER TO guard_owner;
GRANT ALL ON owned TO guard_clerk;
SET ROLE guard_clerk;
ALTER TABLE owned ENABLE TRIGGER ALL;
\echo :SQLSTATE
SELECT snowflake_guard('owned');
\echo :SQLSTATE
SELECT guard_refusals FROM snowflake_status;
\echo :SQLSTATE
SET ROLE guard_member;
SELECT snowflake_guard('owned');
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA guarded CASCADE;
DROP FOREIGN DATA WRAPPER nothing CASCADE;
DROP ROLE guard_member, guard_owner, guard_clerk;
