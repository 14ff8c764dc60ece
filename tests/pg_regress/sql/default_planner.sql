-- A time range is a range of the primary key, and the planner sees it.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- 10,000 rows, one a minute from 2024-01-01 on.
CREATE TABLE events (id bigint PRIMARY KEY, minute integer NOT NULL, line text NOT NULL);
INSERT INTO events
SELECT snowflake_encode(timestamptz '2024-01-01 00:00Z' + minute * interval '1 minute', 1, minute % 4096), minute, 'line'
  FROM generate_series(0, 9999) AS minute;
ANALYZE events;

SELECT count(*), min(minute), max(minute)
  FROM events WHERE snowflake_between(id, '2024-01-02 00:00Z', '2024-01-02 01:00Z');
-- Two comparisons with the key, not a call for each row; nothing is left to filter.
EXPLAIN (COSTS OFF)
SELECT * FROM events WHERE snowflake_between(id, '2024-01-02 00:00Z', '2024-01-02 01:00Z');
-- A bound that changes from statement to statement is worked out once in each.
EXPLAIN (COSTS OFF)
SELECT * FROM events WHERE snowflake_between(id, now() - interval '1 hour', 'infinity');
-- The newest of a range, without a sort.
EXPLAIN (COSTS OFF)
SELECT * FROM events WHERE snowflake_between(id, '2024-01-02 00:00Z', '2024-01-03 00:00Z') ORDER BY id DESC LIMIT 10;
-- One probe for each row of another table.
EXPLAIN (COSTS OFF)
SELECT count(*)
  FROM (VALUES (timestamptz '2024-01-02 00:00Z'), ('2024-01-03 00:00Z')) AS hours (begins)
       JOIN events ON snowflake_between(id, begins, begins + interval '1 hour');

PREPARE hour(timestamptz) AS
    SELECT count(*), min(minute), max(minute) FROM events WHERE snowflake_between(id, $1, $1 + interval '1 hour');
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE hour('2024-01-02 00:00Z');
EXECUTE hour('2024-01-02 00:00Z');
EXECUTE hour('2024-01-03 00:00Z');
RESET plan_cache_mode;
DEALLOCATE hour;

-- The planner knows how many rows to expect. Its histogram has 100 buckets of 100 rows, hence the margins.
CREATE FUNCTION expected(query text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;
SELECT expected($$SELECT * FROM events WHERE snowflake_between(id, '2024-01-02 00:00Z', '2024-01-02 01:00Z')$$)
       BETWEEN 30 AND 120 AS an_hour_has_60,
       expected($$SELECT * FROM events WHERE snowflake_between(id, '2024-01-02 00:00Z', '2024-01-03 00:00Z')$$)
       BETWEEN 1200 AND 1700 AS a_day_has_1440,
       expected($$SELECT * FROM events WHERE snowflake_between(id, '-infinity', 'infinity')$$)
       BETWEEN 9900 AND 10000 AS all_of_it_has_10000;
DROP FUNCTION expected;
DROP TABLE events;

-- Partitions by time, with bounds that the functions work out.
CREATE TABLE logs (id bigint PRIMARY KEY, line text NOT NULL) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE logs_%s PARTITION OF logs FOR VALUES FROM (%s) TO (%s)', year,
              snowflake_min_id(make_timestamptz(year, 1, 1, 0, 0, 0, 'UTC')),
              snowflake_min_id(make_timestamptz(year + 1, 1, 1, 0, 0, 0, 'UTC')))
  FROM generate_series(2022, 2025) AS year
\gexec
INSERT INTO logs
SELECT snowflake_encode(make_timestamptz(year, month, 1, 0, 0, 0, 'UTC'), 1, 0), 'line'
  FROM generate_series(2022, 2025) AS year, generate_series(1, 12) AS month;
ANALYZE logs;
SELECT tableoid::regclass AS partition, count(*) FROM logs GROUP BY 1 ORDER BY 1;

-- STABLE functions are no constants to the planner: the partitions go when the executor starts. A range that ends, or
-- begins, where a partition does touches no other.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)
SELECT * FROM logs WHERE snowflake_between(id, '2024-01-01 00:00Z', '2025-01-01 00:00Z');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)
SELECT * FROM logs WHERE snowflake_between(id, '2023-07-01 00:00Z', '2024-07-01 00:00Z');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)
SELECT * FROM logs WHERE snowflake_between(id, '-infinity', '2022-01-01 00:00:00.001Z');
-- No partition at all: later than all of them, before the epoch, and after the layout's end.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)
SELECT * FROM logs WHERE snowflake_between(id, '2030-01-01 00:00Z', 'infinity');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)
SELECT * FROM logs WHERE snowflake_between(id, '-infinity', '2010-01-01 00:00Z');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)
SELECT * FROM logs WHERE snowflake_between(id, '2081-01-01 00:00Z', 'infinity');

PREPARE range(timestamptz, timestamptz) AS SELECT * FROM logs WHERE snowflake_between(id, $1, $2);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) EXECUTE range('2024-01-01 00:00Z', '2025-01-01 00:00Z');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) EXECUTE range('2023-07-01 00:00Z', '2024-07-01 00:00Z');
RESET plan_cache_mode;
DEALLOCATE range;
DROP TABLE logs;
