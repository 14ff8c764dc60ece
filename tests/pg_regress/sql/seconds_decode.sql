-- The layout 50:4:8@1s: its 62 bits leave the highest of a positive bigint unused, and its time ends long after
-- PostgreSQL's, which ends in the year 294276.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- 256 is one worker, 4096 one tick of a second.
SELECT id, d.*
  FROM unnest(ARRAY[0, 255, 256, 3840, 4095, 4096, 8191]) AS id, LATERAL snowflake_decode(id) AS d
 ORDER BY id;
SELECT jsonb_pretty(snowflake_describe(4096 + 256 + 1));

-- 86,400 ticks make a day, counted from the epoch's fraction of a second.
SELECT snowflake_encode('2010-11-05 01:42:54.657Z', 15, 255) AS a_day_later,
       snowflake_encode('2010-11-05 01:42:54.656999Z', 15, 255) AS a_tick_earlier;
SELECT worker_id, created_at BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '2 seconds' AS now
  FROM snowflake_decode(snowflake_nextval());
-- The largest block: what half of max_ahead, 50 ms, holds of the second's 256 IDs.
SELECT l.sequence - f.sequence AS apart, l.created_at = f.created_at AS one_tick
  FROM (SELECT snowflake_reserve(12) AS first OFFSET 0) AS block,
       LATERAL snowflake_decode(first) AS f, LATERAL snowflake_decode(first + 11) AS l;

-- The last time that PostgreSQL knows, and the first ID beyond it.
SELECT snowflake_last_id_before('294276-12-31 23:59:59.999999Z') AS last_in_range \gset
SELECT :last_in_range AS id, snowflake_timestamp(:last_in_range);
SELECT snowflake_timestamp(:last_in_range + 1);
\echo :SQLSTATE
SELECT * FROM snowflake_decode(4611686018427387903);
\echo :SQLSTATE
SELECT snowflake_describe(4611686018427387903);
\echo :SQLSTATE
SELECT snowflake_max_id('294276-12-31 23:59:59.999999Z') AS goes_on;

-- Infinity is later than every ID, of this layout too.
SELECT snowflake_first_id_from('-infinity'), snowflake_last_id_before('-infinity'),
       snowflake_first_id_from('infinity'), snowflake_last_id_before('infinity');
SELECT snowflake_between(0, '-infinity', 'infinity') AS first,
       snowflake_between(4611686018427387903, '-infinity', 'infinity') AS last,
       snowflake_between(4611686018427387904, '-infinity', 'infinity') AS above_the_last;
-- The spare bit has a number that is larger than every ID, so that a range after the end answers false, not NULL.
SELECT snowflake_between(4611686018427387903, 'infinity', 'infinity') AS last_from_infinity;
SELECT snowflake_encode('infinity', 0, 0);
\echo :SQLSTATE
SELECT snowflake_min_id('infinity');
\echo :SQLSTATE
SELECT snowflake_max_id('infinity');
\echo :SQLSTATE
SELECT snowflake_min_id('-infinity');
\echo :SQLSTATE

-- A number above the layout's last ID is none.
SELECT snowflake_decode(4611686018427387904);
\echo :SQLSTATE
SELECT snowflake_timestamp(9223372036854775807);
\echo :SQLSTATE
SELECT snowflake_describe(-1);
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 16, 0);
\echo :SQLSTATE
SELECT snowflake_reserve(257);
\echo :SQLSTATE
SELECT snowflake_nextval() > 0 AS goes_on;
