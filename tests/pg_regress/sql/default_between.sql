-- A time range of a table is a range of its primary key: exact at its bounds, and visible as such to the planner.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake_pg;
RESET client_min_messages;
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- The first and the last ID of the tick .105, and the ID before and after the tick.
CREATE TEMPORARY TABLE probes (id bigint, what text);
INSERT INTO probes VALUES
    (snowflake_min_id('2022-06-28 16:07:40.105Z') - 1, 'before'),
    (snowflake_min_id('2022-06-28 16:07:40.105Z'), 'first'),
    (snowflake_max_id('2022-06-28 16:07:40.105Z'), 'last'),
    (snowflake_max_id('2022-06-28 16:07:40.105Z') + 1, 'after');

-- A tick's IDs carry its beginning as their time: a bound inside the tick lies after all of them.
\pset null (null)
SELECT b."from", b.until, string_agg(what, ' ' ORDER BY id) AS found
  FROM (VALUES (timestamptz '2022-06-28 16:07:40.105Z', timestamptz '2022-06-28 16:07:40.106Z'),
               ('2022-06-28 16:07:40.104999Z', '2022-06-28 16:07:40.105001Z'),
               ('2022-06-28 16:07:40.105001Z', '2022-06-28 16:07:40.106001Z'),
               ('2022-06-28 16:07:40.105Z', '2022-06-28 16:07:40.105001Z'),
               ('2022-06-28 16:07:40.105001Z', '2022-06-28 16:07:40.105999Z'),
               ('2022-06-28 16:07:40.104Z', '2022-06-28 16:07:40.105Z'),
               ('2022-06-28 16:07:40.105Z', '2022-06-28 16:07:40.105Z'),
               ('2022-06-28 16:07:40.106Z', '2022-06-28 16:07:40.105Z'),
               ('infinity', '-infinity'),
               ('-infinity', 'infinity'),
               ('-infinity', '2022-06-28 16:07:40.105Z'),
               ('2022-06-28 16:07:40.106Z', 'infinity'),
               ('1970-01-01 00:00Z', '2022-06-28 16:07:40.106Z'),
               ('2022-06-28 16:07:40.105Z', '3000-01-01 00:00Z'),
               ('1970-01-01 00:00Z', '2010-11-04 01:42:54.657Z'),
               ('2080-07-10 17:30:30.209Z', '3000-01-01 00:00Z')) AS b ("from", until)
       LEFT JOIN probes ON snowflake_between(id, b."from", b.until)
 GROUP BY b."from", b.until
 ORDER BY b."from", b.until;

-- The first ID and the last ID of the layout lie in the range that is open on both sides, and nowhere beyond. After the
-- end there is no first ID, and NULL finds as few rows as false.
SELECT snowflake_between(0, '-infinity', 'infinity') AS first,
       snowflake_between(9223372036854775807, '-infinity', 'infinity') AS last,
       snowflake_between(0, '-infinity', '2010-11-04 01:42:54.657Z') AS first_before_epoch,
       snowflake_between(0, '2010-11-04 01:42:54.657Z', 'infinity') AS first_from_epoch,
       snowflake_between(9223372036854775807, '2080-07-10 17:30:30.209Z', 'infinity') AS last_after_end;

-- What is no ID is in no range, rather than an error in the middle of a table.
SELECT snowflake_between(-1, '-infinity', 'infinity') AS minus_one,
       snowflake_between(-9223372036854775808, '-infinity', 'infinity') AS smallest_bigint;

-- Comparisons with NULL, and the AND between them.
SELECT snowflake_between(NULL, '-infinity', 'infinity') AS id,
       snowflake_between(0, NULL, 'infinity') AS "from",
       snowflake_between(0, '-infinity', NULL) AS until,
       snowflake_between(0, NULL, '-infinity') AS decided_by_until,
       snowflake_between(0, 'infinity', NULL) AS decided_by_from;

-- "from" is a reserved word, so its name needs quotes.
SELECT snowflake_between(id => 1541815603606036480, "from" => '2022-06-28', until => '2022-06-29');

-- 10,000 rows, one a minute from 2024-01-01 on.
CREATE TABLE events (id bigint PRIMARY KEY);
INSERT INTO events
SELECT snowflake_encode(timestamptz '2024-01-01 00:00Z' + minute * interval '1 minute', 1, minute % 4096)
  FROM generate_series(0, 9999) AS minute;
-- VACUUM beside ANALYZE, so that an index-only scan need not visit the table.
VACUUM (ANALYZE) events;

SELECT count(*) FROM events WHERE snowflake_between(id, '2024-01-02 00:00Z', '2024-01-02 01:00Z');
-- Two comparisons with the key, not a call for each row.
EXPLAIN (COSTS OFF)
SELECT * FROM events WHERE snowflake_between(id, '2024-01-02 00:00Z', '2024-01-02 01:00Z');
-- A stable bound too is worked out once.
EXPLAIN (COSTS OFF)
SELECT * FROM events WHERE snowflake_between(id, now() - interval '1 hour', 'infinity');
PREPARE hour(timestamptz) AS
    SELECT count(*) FROM events WHERE snowflake_between(id, $1, $1 + interval '1 hour');
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE hour('2024-01-02 00:00Z');
EXECUTE hour('2024-01-02 00:00Z');
RESET plan_cache_mode;
DEALLOCATE hour;

-- The planner knows how many rows to expect: an hour has 60. Its histogram has 100 buckets of 100 rows, hence the margin.
CREATE FUNCTION expected(query text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;
SELECT expected('SELECT * FROM events WHERE snowflake_between(id, ''2024-01-02 00:00Z'', ''2024-01-02 01:00Z'')')
       BETWEEN 30 AND 120 AS expects_about_60;
DROP FUNCTION expected;
DROP TABLE events;

-- Partitions by time, with bounds that the functions work out.
CREATE TABLE logs (id bigint PRIMARY KEY, line text) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE logs_%s PARTITION OF logs FOR VALUES FROM (%s) TO (%s)', year,
              snowflake_min_id(make_timestamptz(year, 1, 1, 0, 0, 0, 'UTC')),
              snowflake_min_id(make_timestamptz(year + 1, 1, 1, 0, 0, 0, 'UTC')))
  FROM generate_series(2022, 2025) AS year
\gexec
INSERT INTO logs
SELECT snowflake_encode(make_timestamptz(year, month, 1, 0, 0, 0, 'UTC'), 1, 0), 'line'
  FROM generate_series(2022, 2025) AS year, generate_series(1, 12) AS month;
SELECT tableoid::regclass AS partition, count(*) FROM logs GROUP BY 1 ORDER BY 1;

-- STABLE functions are not constants for the planner: the partitions go when the executor starts, also those that only
-- touch the range.
SET enable_indexscan = off;
SET enable_bitmapscan = off;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT * FROM logs WHERE snowflake_between(id, '2024-01-01 00:00Z', '2025-01-01 00:00Z');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT * FROM logs WHERE snowflake_between(id, '2023-07-01 00:00Z', '2024-07-01 00:00Z');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT * FROM logs WHERE snowflake_between(id, '2030-01-01 00:00Z', 'infinity');
RESET enable_indexscan;
RESET enable_bitmapscan;
DROP TABLE logs;
