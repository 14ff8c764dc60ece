-- Many IDs at a time: snowflake_nextval_batch.

-- As many as asked for, increasing, all of this server: around one tick's 4096, and over many ticks.
SELECT asked, count(*) AS issued, count(DISTINCT id) AS different, bool_and(id > before IS NOT FALSE) AS increasing,
       min(worker_id) AS lowest_worker, max(worker_id) AS highest_worker
  FROM unnest(ARRAY[1, 2, 4095, 4096, 4097, 100000]) AS asked,
       LATERAL (SELECT id, lag(id) OVER (ORDER BY position) AS before
                  FROM snowflake_nextval_batch(asked) WITH ORDINALITY AS drawn (id, position)) AS pairs,
       LATERAL snowflake_decode(id)
 GROUP BY asked ORDER BY asked;
SELECT count(*) FROM snowflake_nextval_batch(count => 3);
SELECT id > 0 AS positive FROM snowflake_nextval_batch(2) AS id;

-- In the list of a SELECT they are drawn as they are fetched, up to the largest count at no cost.
SELECT count(*) FROM (SELECT snowflake_nextval_batch(10000000) LIMIT 5) AS few;
SELECT count(*) FROM (SELECT snowflake_nextval_batch(10000000) LIMIT 0) AS none;
SELECT snowflake_nextval_batch(10000001);
\echo :SQLSTATE
-- None at all, for no rows or for NULL.
SELECT count(*) FROM (SELECT snowflake_nextval_batch(5) WHERE false) AS none;
SELECT snowflake_nextval_batch(NULL);
SELECT * FROM snowflake_nextval_batch(NULL);

-- One batch for each row.
SELECT n, count(*) AS issued, count(DISTINCT id) AS different
  FROM (SELECT n, snowflake_nextval_batch(n) AS id FROM generate_series(1, 3) AS n) AS drawn
 GROUP BY n ORDER BY n;

-- Another batch between the fetches of one: neither gets an ID of the other.
BEGIN;
CREATE TEMPORARY TABLE drawn (id bigint PRIMARY KEY) ON COMMIT DROP;
DECLARE ids CURSOR FOR SELECT snowflake_nextval_batch(10000) AS id;
FETCH 1 FROM ids \gset
INSERT INTO drawn VALUES (:id);
INSERT INTO drawn SELECT snowflake_nextval_batch(10000);
FETCH 1 FROM ids \gset
INSERT INTO drawn VALUES (:id);
MOVE FORWARD 5000 FROM ids;
FETCH 1 FROM ids \gset
INSERT INTO drawn VALUES (:id);
SELECT count(*) FROM drawn;
COMMIT;
SELECT count(DISTINCT id)
  FROM (SELECT snowflake_nextval_batch(1000) AS id UNION ALL SELECT snowflake_nextval_batch(1000)) AS two;

-- A statement that fails on the way leaves the session able to go on.
SELECT 1 / (4 - position) FROM snowflake_nextval_batch(10) WITH ORDINALITY AS drawn (id, position);
\echo :SQLSTATE
SELECT count(*) FROM snowflake_nextval_batch(10);

-- Filling a table.
CREATE TABLE items (id bigint PRIMARY KEY, n integer);
INSERT INTO items SELECT id, row_number() OVER () FROM snowflake_nextval_batch(20000) AS id;
SELECT count(*), bool_and(n = place) AS in_order
  FROM (SELECT n, row_number() OVER (ORDER BY id) AS place FROM items) AS placed;
DROP TABLE items;
