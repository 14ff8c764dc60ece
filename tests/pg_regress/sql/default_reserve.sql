-- A block of consecutive IDs: snowflake_reserve returns the first.

-- As many IDs after the first as asked for, in its tick, all of this server, and none of them issued again.
SELECT count, last_time = first_time AS one_tick, last_sequence - first_sequence + 1 = count AS consecutive,
       first_worker, last_worker, snowflake_nextval() > first + count - 1 AS not_again
  FROM unnest(ARRAY[1, 2, 1000, 4095, 4096]) AS count,
       LATERAL (SELECT snowflake_reserve(count) AS first OFFSET 0) AS block,
       LATERAL snowflake_decode(first) AS f (first_time, first_datacenter, first_worker, first_sequence),
       LATERAL snowflake_decode(first + count - 1) AS l (last_time, last_datacenter, last_worker, last_sequence);
-- The largest block is all that this worker has in a tick.
SELECT snowflake_reserve(4096) AS first \gset
SELECT worker_id, sequence AS first_sequence FROM snowflake_decode(:first);
SELECT worker_id, sequence AS last_sequence FROM snowflake_decode(:first + 4095);
SELECT snowflake_reserve(count => 2) > :first + 4095 AS next_block_after_it;

-- Blocks do not overlap, whether or not two fit into one tick.
SELECT count, count(*) AS blocks, bool_and(first >= before + count IS NOT FALSE) AS apart
  FROM (SELECT count, first, lag(first) OVER (PARTITION BY count ORDER BY n) AS before
          FROM unnest(ARRAY[1, 100, 2048, 2049, 4096]) AS count,
               LATERAL (SELECT n, snowflake_reserve(count) AS first FROM generate_series(1, 50) AS n OFFSET 0) AS drawn
       ) AS pairs
 GROUP BY count ORDER BY count;

SELECT snowflake_reserve(4097);
\echo :SQLSTATE
SELECT snowflake_reserve(0);
\echo :SQLSTATE
\pset null (null)
SELECT snowflake_reserve(NULL);

-- As an ORM uses it: a block for 50 rows, of which the program numbers each.
CREATE TABLE pooled (id bigint PRIMARY KEY, n integer);
SELECT snowflake_reserve(50) AS first \gset
INSERT INTO pooled SELECT :first + n, n FROM generate_series(0, 49) AS n;
SELECT snowflake_reserve(50) AS first \gset
INSERT INTO pooled SELECT :first + n, n FROM generate_series(0, 49) AS n;
SELECT count(*), count(DISTINCT worker_id) AS workers FROM pooled, LATERAL snowflake_decode(id);
DROP TABLE pooled;
