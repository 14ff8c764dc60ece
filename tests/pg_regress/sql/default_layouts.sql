-- IDs of other systems: their layouts by name, and any layout in bits with its tick and epoch.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';
SELECT name, bits, tick, epoch, last_instant, ids_per_second FROM snowflake_layouts;
-- What the systems keep in the columns of snowflake_decode; NULL where they keep nothing.
SELECT name, datacenter_id, worker_id, sequence FROM snowflake_layouts;
SELECT name, source FROM snowflake_layouts;
-- Everybody may look.
SELECT has_table_privilege('pg_monitor', 'snowflake_layouts', 'SELECT') AS visible;

-- A name, its bits with its epoch, and no setting of this server.
SELECT name, snowflake_decode(bound, name), snowflake_decode(bound, bits, epoch) = snowflake_decode(bound, name) AS by_bits,
       snowflake_timestamp(bound, name) = snowflake_timestamp(bound, bits, epoch) AS same_time
  FROM snowflake_layouts, snowflake_max_id(epoch + interval '8 years', name) AS bound;
SELECT name, snowflake_min_id(at, name), snowflake_max_id(at, name),
       snowflake_min_id(at, name) = snowflake_min_id(at, bits, epoch) AS min_by_bits,
       snowflake_max_id(at, name) = snowflake_max_id(at, bits, epoch) AS max_by_bits,
       snowflake_timestamp(snowflake_min_id(at, name), name) AS tick
  FROM snowflake_layouts, (VALUES (timestamptz '2024-02-29 12:34:56.789Z')) AS v (at);
-- The last ID of each.
SELECT name, snowflake_max_id(last_instant, name), snowflake_decode(snowflake_max_id(last_instant, name), name)
  FROM snowflake_layouts;

-- Parts in, parts out.
SELECT name, id, decoded
  FROM snowflake_layouts AS l,
       snowflake_encode('2024-02-29 12:34:56.789Z', CASE WHEN l.worker_id IS NULL THEN 0 ELSE 21 END, 255,
                        CASE WHEN l.datacenter_id IS NULL THEN 0 ELSE 9 END, l.name) AS id,
       snowflake_decode(id, name) AS decoded;
SELECT snowflake_encode('2024-02-29Z', 5, 6, 'discord') AS without,
       snowflake_encode('2024-02-29Z', 5, 6, 0, 'discord') AS with_datacenter,
       snowflake_encode('2024-02-29Z', 5, 6, 'discord', timestamptz '2015-01-01Z') AS with_epoch,
       snowflake_encode('2024-02-29Z', 5, 6, 0, 'discord', '2015-01-01Z') AS with_both;
SELECT snowflake_encode(created_at, worker_id, sequence, datacenter_id, '41:12s:5:5', '2020-01-01Z') = id AS round_trip
  FROM (VALUES (4611686018427387904), (0), (9223372036854775807)) AS v (id), snowflake_decode(id, '41:12s:5:5', '2020-01-01Z');

-- NULL in, NULL out.
SELECT snowflake_decode(NULL, 'discord') IS NULL, snowflake_timestamp(1, NULL) IS NULL, snowflake_timestamp(1, 'discord', NULL) IS NULL,
       snowflake_min_id(NULL, 'discord') IS NULL, snowflake_encode(now(), 1, NULL, 'discord') IS NULL;

-- Immutable: in a generated column and in an index.
CREATE TABLE messages (
    id bigint PRIMARY KEY,
    sent timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'discord')) STORED
);
CREATE INDEX ON messages (snowflake_timestamp(id, '41:10:12', timestamptz '2015-01-01Z'));
CREATE INDEX ON messages (snowflake_to_text(id));
INSERT INTO messages VALUES (175928847299117063);
TABLE messages;
DROP TABLE messages;
-- What reads this server's settings cannot be.
CREATE TABLE messages (id bigint, sent timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED);

-- In letters of either case.
SELECT snowflake_decode(175928847299117063, 'Discord') = snowflake_decode(175928847299117063, 'discord') AS discord,
       snowflake_decode(1, 'TWITTER') = snowflake_decode(1, 'twitter') AS twitter,
       snowflake_decode(1, '39:8S:16@10MS') = snowflake_decode(1, '39:8s:16@10ms') AS bits;

-- Refused, with the reason.
SELECT snowflake_decode(1, 'Twiter');
\echo :SQLSTATE
SELECT snowflake_decode(1, '');
\echo :SQLSTATE
SELECT snowflake_decode(1, '41:10:13');
\echo :SQLSTATE
SELECT snowflake_decode(1, '41:10:12@5ms');
\echo :SQLSTATE
SELECT snowflake_decode(1, repeat('41:10:12 ', 20));
\echo :SQLSTATE
SELECT snowflake_decode(1, repeat('0', 100) || '41:10:12');
\echo :SQLSTATE
SELECT snowflake_decode(1, E'é\n"\\');
\echo :SQLSTATE
SELECT snowflake_timestamp(-1, 'discord');
\echo :SQLSTATE
SELECT snowflake_timestamp(9223372036854775807, 'sonyflake', '2014-09-01Z');
\echo :SQLSTATE
SELECT snowflake_timestamp(9007199254740992, '41:4:8');
\echo :SQLSTATE
SELECT snowflake_timestamp(4611686018427387904, '62:0:1@1s');
\echo :SQLSTATE
SELECT snowflake_timestamp(1, 'discord', '1969-12-31 23:59:59.999Z');
\echo :SQLSTATE
SELECT snowflake_timestamp(1, 'discord', '2200-01-01Z');
\echo :SQLSTATE
SELECT snowflake_timestamp(1, 'discord', 'infinity');
\echo :SQLSTATE
SELECT snowflake_timestamp(1, 'discord', '-infinity');
\echo :SQLSTATE
SELECT snowflake_timestamp(1, 'discord', '2015-01-01 00:00:00.0001Z');
\echo :SQLSTATE
SELECT snowflake_min_id('2014-12-31 23:59:59.999999Z', 'discord');
\echo :SQLSTATE
SELECT snowflake_max_id('2024-11-20 13:24:16Z', 'uid-generator');
\echo :SQLSTATE
SELECT snowflake_max_id('infinity', 'discord', '2015-01-01Z');
\echo :SQLSTATE
SELECT snowflake_encode(now(), 32, 0, 'discord');
\echo :SQLSTATE
SELECT snowflake_encode(now(), 0, 4096, 'discord');
\echo :SQLSTATE
SELECT snowflake_encode(now(), 0, 0, 32, 'discord');
\echo :SQLSTATE
SELECT snowflake_encode(now(), 0, 0, 1, 'twitter');
\echo :SQLSTATE
SELECT snowflake_encode(now(), 1, 0, 'mastodon');
\echo :SQLSTATE
SELECT snowflake_encode(now(), -1, 0, 'discord');
\echo :SQLSTATE
SELECT snowflake_encode('2014-01-01Z', 0, 0, 0, 'discord', '2014-01-01 00:00:00.001Z');
\echo :SQLSTATE
