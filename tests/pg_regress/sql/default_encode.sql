-- From a time to IDs, in the default layout 41:10:12: one ID, and the first and last of a tick.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- Twitter's own example. What is finer than a tick is cut off.
SELECT snowflake_encode('2022-06-28 16:07:40.105Z', 378, 0);
SELECT snowflake_encode('2022-06-28 16:07:40.105999Z', 378, 0) AS same_tick,
       snowflake_encode('2022-06-28 16:07:40.106Z', 378, 0) AS next_tick,
       snowflake_encode('2022-06-28 16:07:40.105Z', 379, 0) AS next_worker,
       snowflake_encode('2022-06-28 16:07:40.105Z', 378, 1) AS next_sequence;
SELECT snowflake_encode('2022-06-28 16:07:40.105Z', 378, 0, 0) AS with_datacenter,
       snowflake_encode(sequence => 0, worker_id => 378, created_at => '2022-06-28 16:07:40.105Z') AS by_name,
       snowflake_encode(datacenter_id => 0, sequence => 0, worker_id => 378, created_at => '2022-06-28 16:07:40.105Z')
           AS all_by_name;
SELECT snowflake_encode('2010-11-04 01:42:54.657Z', 0, 0) AS smallest,
       snowflake_encode('2080-07-10 17:30:30.208999Z', 1023, 4095) AS largest;

-- Encoding gives back what decoding took apart, over the whole range; the odd step meets every worker and sequence number.
SELECT count(*) AS ids, count(*) FILTER (WHERE again = id) AS equal,
       count(DISTINCT d.created_at) AS ticks, count(DISTINCT d.worker_id) AS workers, count(DISTINCT d.sequence) AS sequences
  FROM generate_series(0, 9223372036854770000, 922337203685477) AS id,
       LATERAL snowflake_decode(id) AS d,
       LATERAL snowflake_encode(d.created_at, d.worker_id, d.sequence, d.datacenter_id) AS again;

-- The IDs of the example's tick, and of its neighbours.
SELECT at, snowflake_min_id(at), snowflake_max_id(at)
  FROM (VALUES (timestamptz '2010-11-04 01:42:54.657Z'),
               ('2022-06-28 16:07:40.104999Z'),
               ('2022-06-28 16:07:40.105Z'),
               ('2022-06-28 16:07:40.105001Z'),
               ('2022-06-28 16:07:40.106Z'),
               ('2080-07-10 17:30:30.208Z'),
               ('2080-07-10 17:30:30.208999Z')) AS v (at)
 ORDER BY at;
SELECT 1541815603606036480 BETWEEN snowflake_min_id(at => '2022-06-28 16:07:40.105Z')
                               AND snowflake_max_id(at => '2022-06-28 16:07:40.105Z') AS holds_the_example;

-- These two take any time. A tick's IDs carry its beginning as their time, so a time inside it lies after all of them.
-- After the end no bigint is above the last ID.
\pset null (null)
SELECT at, snowflake_last_id_before(at), snowflake_first_id_from(at)
  FROM (VALUES (timestamptz '-infinity'),
               ('4714-11-24 00:00:00Z BC'),
               ('2010-11-04 01:42:54.656Z'),
               ('2010-11-04 01:42:54.656999Z'),
               ('2010-11-04 01:42:54.657Z'),
               ('2010-11-04 01:42:54.657001Z'),
               ('2022-06-28 16:07:40.104999Z'),
               ('2022-06-28 16:07:40.105Z'),
               ('2022-06-28 16:07:40.105001Z'),
               ('2022-06-28 16:07:40.106Z'),
               ('2080-07-10 17:30:30.208Z'),
               ('2080-07-10 17:30:30.208001Z'),
               ('2080-07-10 17:30:30.209Z'),
               ('294276-12-31 23:59:59.999999Z'),
               ('infinity')) AS v (at)
 ORDER BY at;
SELECT snowflake_last_id_before(at => '2010-11-04 01:42:54.658Z'), snowflake_first_id_from(at => '2010-11-04 01:42:54.658Z');

SELECT snowflake_encode(NULL, 0, 0), snowflake_encode(now(), NULL, 0), snowflake_encode(now(), 0, NULL),
       snowflake_encode(now(), 0, 0, NULL);
SELECT snowflake_min_id(NULL), snowflake_max_id(NULL), snowflake_first_id_from(NULL), snowflake_last_id_before(NULL);
