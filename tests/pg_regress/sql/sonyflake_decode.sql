-- Sonyflake's layout: 39 bits of 10 ms since 2014-09-01, 8 bits of sequence, and the machine's 16 bits lowest.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- 65536 is one sequence number, 16777216 is one tick; the last tick is 2^39 - 1.
SELECT id, d.*
  FROM unnest(ARRAY[0, 1, 65535, 65536, 16711680, 16777215, 16777216, 9223372036854775807]) AS id,
       LATERAL snowflake_decode(id) AS d
 ORDER BY id;
SELECT jsonb_pretty(snowflake_describe(16842759));
SELECT snowflake_encode('2014-09-01 00:00:00.01Z', 7, 1) AS one_of_each,
       snowflake_encode('2014-09-01 00:00:00.019999Z', 7, 1) AS same_tick,
       snowflake_encode('2014-09-01 00:00:00.02Z', 65535, 255) AS next_tick;
-- 24 hours are 8,640,000 ticks.
SELECT snowflake_encode('2014-09-02 00:00:00Z', 0, 0) / 16777216 AS ticks;

SELECT at, snowflake_min_id(at), snowflake_max_id(at), snowflake_first_id_from(at), snowflake_last_id_before(at)
  FROM (VALUES (timestamptz '2014-09-01 00:00:00.01Z'), ('2014-09-01 00:00:00.010001Z'), ('2014-09-01 00:00:00.019999Z'),
               ('2014-09-01 00:00:00.02Z')) AS v (at);
SELECT snowflake_between(16842759, '2014-09-01 00:00:00.01Z', '2014-09-01 00:00:00.02Z') AS in_its_tick,
       snowflake_between(16842759, '2014-09-01 00:00:00.010001Z', 'infinity') AS after_its_time;

-- The IDs of a tick are 65536 apart, and still increase.
SELECT count(*), bool_and(id > before IS NOT FALSE) AS increasing, min(id - before) AS nearest
  FROM (SELECT id, lag(id) OVER (ORDER BY position) AS before
          FROM snowflake_nextval_batch(1000) WITH ORDINALITY AS drawn (id, position)) AS pairs;
SELECT DISTINCT datacenter_id, worker_id FROM snowflake_nextval_batch(1000) AS id, LATERAL snowflake_decode(id);

-- So there is no block of consecutive numbers to reserve, of no length.
SELECT snowflake_reserve(2);
\echo :SQLSTATE
SELECT snowflake_reserve(1);
\echo :SQLSTATE
SELECT snowflake_reserve(0);
\echo :SQLSTATE

SELECT snowflake_encode('2024-01-01', 0, 0, 1);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 65536, 0);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 0, 256);
\echo :SQLSTATE
SELECT snowflake_decode(-1);
\echo :SQLSTATE
SELECT snowflake_min_id('2014-08-31 23:59:59.999999Z');
\echo :SQLSTATE
SELECT snowflake_max_id('2188-11-16 03:28:58.88Z');
\echo :SQLSTATE
SELECT snowflake_nextval() > 0 AS goes_on;
