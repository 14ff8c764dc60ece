-- From an ID to its parts and back, on fixed IDs of the default layout 41:10:12.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake_pg;
RESET client_min_messages;
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- Twitter's own example, and each edge of each field.
SELECT id, d.*
  FROM (VALUES (0, 'nothing'),
               (1, 'sequence 1'),
               (4095, 'last sequence'),
               (4096, 'worker 1'),
               (4190208, 'last worker'),
               (4194303, 'last ID of the first tick'),
               (4194304, 'tick 1'),
               (1541815603606036480, 'the example'),
               (9223372036850581504, 'first ID of the last tick'),
               (9223372036854775807, 'last ID of all')) AS v (id, what),
       LATERAL snowflake_decode(v.id) AS d
 ORDER BY id;

-- The names and types of the columns.
SELECT pg_typeof(created_at), pg_typeof(datacenter_id), pg_typeof(worker_id), pg_typeof(sequence)
  FROM snowflake_decode(0);
SELECT (snowflake_decode(1541815603606036480)).worker_id;
SELECT snowflake_decode(1541815603606036480);
SELECT created_at, worker_id FROM snowflake_decode(id => 1541815603606036480);

-- jsonb sorts its keys by length; the time is in UTC whatever the session's zone.
SET timezone = 'America/New_York';
SELECT jsonb_pretty(snowflake_describe(1541815603606036480));
SELECT snowflake_describe(0);
SELECT snowflake_describe(id => 9223372036854775807);
SELECT snowflake_timestamp(1541815603606036480);
RESET timezone;
SET timezone = 'UTC';
SELECT snowflake_timestamp(0), snowflake_timestamp(id => 1541815603606036480), snowflake_timestamp(9223372036854775807);

-- Encoding is the inverse of decoding; what is finer than a tick is cut off.
SELECT snowflake_encode('2022-06-28 16:07:40.105Z', 378, 0);
SELECT snowflake_encode('2022-06-28 16:07:40.105999Z', 378, 0) = 1541815603606036480 AS cut_off;
SELECT snowflake_encode('2022-06-28 16:07:40.105Z', 378, 0, 0) = 1541815603606036480 AS with_datacenter;
SELECT snowflake_encode(sequence => 0, worker_id => 378, created_at => '2022-06-28 16:07:40.105Z', datacenter_id => 0);
SELECT snowflake_encode('2010-11-04 01:42:54.657Z', 0, 0) AS smallest,
       snowflake_encode('2080-07-10 17:30:30.208Z', 1023, 4095) AS largest;
SELECT count(*) AS ids, count(*) FILTER (WHERE again = id) AS equal
  FROM generate_series(0, 9223372036854775807 - 92233720368547757, 92233720368547757) AS id,
       LATERAL snowflake_decode(id) AS d,
       LATERAL snowflake_encode(d.created_at, d.worker_id, d.sequence, d.datacenter_id) AS again;

-- The first and the last ID of the example's tick, and the neighbours.
SELECT at, snowflake_min_id(at), snowflake_max_id(at), snowflake_last_id_before(at)
  FROM (VALUES (timestamptz '2010-11-04 01:42:54.657Z'),
               ('2022-06-28 16:07:40.104999Z'),
               ('2022-06-28 16:07:40.105Z'),
               ('2022-06-28 16:07:40.105001Z'),
               ('2022-06-28 16:07:40.106Z'),
               ('2080-07-10 17:30:30.208Z'),
               ('2080-07-10 17:30:30.208999Z')) AS v (at)
 ORDER BY at;
SELECT snowflake_min_id(at => '2022-06-28 16:07:40.105Z') <= 1541815603606036480
   AND snowflake_max_id(at => '2022-06-28 16:07:40.105Z') >= 1541815603606036480 AS holds_the_example;

-- Unlike these two, snowflake_last_id_before has an answer for every instant: all IDs or none.
SELECT at, snowflake_last_id_before(at)
  FROM (VALUES (timestamptz '-infinity'), ('4714-11-24 00:00:00Z BC'), ('2010-11-04 01:42:54.656999Z'),
               ('2010-11-04 01:42:54.657001Z'), ('2080-07-10 17:30:30.209Z'), ('294276-12-31 23:59:59.999999Z'),
               ('infinity')) AS v (at)
 ORDER BY at;

\pset null (null)
SELECT snowflake_decode(NULL), snowflake_describe(NULL), snowflake_timestamp(NULL);
SELECT * FROM snowflake_decode(NULL);
SELECT snowflake_encode(NULL, 0, 0), snowflake_encode(now(), NULL, 0), snowflake_encode(now(), 0, NULL),
       snowflake_encode(now(), 0, 0, NULL);
SELECT snowflake_min_id(NULL), snowflake_max_id(NULL), snowflake_last_id_before(NULL);
SELECT snowflake_nextval_batch(NULL);
SELECT snowflake_reserve(NULL);
