-- The layout 41:5:5:12 since 2020, worker 7 of data centre 3: a datacenter field above the worker's, an epoch of one's own.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- 4096 is one worker, 131072 one data centre, 4194304 one tick; the last tick is 2^41 - 1.
SELECT id, d.*
  FROM unnest(ARRAY[0, 4095, 4096, 126976, 131072, 4063232, 4194303, 4194304, 9223372036854775807]) AS id,
       LATERAL snowflake_decode(id) AS d
 ORDER BY id;

-- 131,373,296,789 ms after 2020-01-01, times 4194304, and 11 * 131072 + 26 * 4096 + 5.
SELECT snowflake_encode('2024-02-29 12:34:56.789Z', 26, 5, 11) AS id \gset
SELECT :id AS id;
SELECT * FROM snowflake_decode(:id);
SELECT snowflake_timestamp(:id);
SELECT jsonb_pretty(snowflake_describe(:id));
SELECT snowflake_encode('2020-01-01 00:00:00Z', 31, 4095, 31) AS last_of_the_first_tick,
       snowflake_encode('2020-01-01 00:00:00.001Z', 0, 0) AS without_datacenter,
       snowflake_encode(datacenter_id => 1, worker_id => 0, sequence => 0, created_at => '2020-01-01 00:00:00Z') AS by_name,
       snowflake_encode('2089-09-06 15:47:35.551Z', 31, 4095, 31) AS largest;

-- The IDs of a tick are those of all workers in all data centres.
SELECT snowflake_min_id(at), snowflake_max_id(at), snowflake_first_id_from(at), snowflake_last_id_before(at)
  FROM (VALUES (timestamptz '2020-01-01 00:00:00.001Z')) AS v (at);
SELECT snowflake_between(:id, '2024-02-29 12:34:56.789Z', '2024-02-29 12:34:56.79Z') AS in_its_tick,
       snowflake_between(:id, '2024-02-29 12:34:56.79Z', 'infinity') AS after_its_tick;

-- What this server issues carries both of its numbers.
SELECT datacenter_id, worker_id FROM snowflake_decode(snowflake_nextval());
SELECT DISTINCT datacenter_id, worker_id FROM snowflake_nextval_batch(10000) AS id, LATERAL snowflake_decode(id);
SELECT f.sequence AS first, l.sequence AS last, l.created_at = f.created_at AS one_tick, l.datacenter_id, l.worker_id
  FROM (SELECT snowflake_reserve(4096) AS first OFFSET 0) AS block,
       LATERAL snowflake_decode(first) AS f, LATERAL snowflake_decode(first + 4095) AS l;

SELECT snowflake_encode('2024-01-01', 0, 0, 32);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 0, 0, -1);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 32, 0, 0);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 0, 4096, 0);
\echo :SQLSTATE
SELECT snowflake_decode(-1);
\echo :SQLSTATE
SELECT snowflake_min_id('2019-12-31 23:59:59.999999Z');
\echo :SQLSTATE
SELECT snowflake_min_id('2089-09-06 15:47:35.552Z');
\echo :SQLSTATE
SELECT snowflake_nextval() > 0 AS goes_on;
