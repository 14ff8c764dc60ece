-- IDs as UUIDs of version 8, for programs that require UUIDs.
SELECT id, snowflake_to_uuid(id), snowflake_from_uuid(snowflake_to_uuid(id)) = id AS again
  FROM (VALUES (0), (1), (7), (8), (1541815603606036480), (9223372036854775807)) AS v (id);
SELECT pg_typeof(snowflake_to_uuid(1)), pg_typeof(snowflake_from_uuid('00000000-0000-8000-8000-000000000000'));
SELECT snowflake_to_uuid(NULL) IS NULL AS no_uuid, snowflake_from_uuid(NULL) IS NULL AS no_id;
-- They sort like the numbers, and an index on the expression finds the rows.
CREATE TABLE rows_with_uuid (id bigint PRIMARY KEY, uuid uuid GENERATED ALWAYS AS (snowflake_to_uuid(id)) STORED);
INSERT INTO rows_with_uuid SELECT n * 922337203685477 + n % 8 FROM generate_series(1, 1000) AS n;
SELECT count(*) FROM (SELECT id > lag(id) OVER (ORDER BY uuid) AS later FROM rows_with_uuid) AS pairs WHERE later;
CREATE INDEX by_uuid ON rows_with_uuid (snowflake_to_uuid(id));
ANALYZE rows_with_uuid;
EXPLAIN (COSTS OFF) SELECT id FROM rows_with_uuid WHERE snowflake_to_uuid(id) = '2acb423e-c42f-8400-8000-000000000000';
EXPLAIN (COSTS OFF) SELECT id FROM rows_with_uuid WHERE id = snowflake_from_uuid('2acb423e-c42f-8400-8000-000000000000');
DROP TABLE rows_with_uuid;

-- Refused, with the reason: a random UUID, one of version 7, another variant, and a bit after the ID.
SELECT snowflake_from_uuid('7d444840-9dc0-41d1-b245-5ffdce74fad2');
\echo :SQLSTATE
SELECT snowflake_from_uuid('017f22e2-79b0-7cc3-98c4-dc0c0c07398f');
\echo :SQLSTATE
SELECT snowflake_from_uuid('00000000-0000-0000-0000-000000000000');
\echo :SQLSTATE
SELECT snowflake_from_uuid('00000000-0000-8000-8000-000000000001');
\echo :SQLSTATE
SELECT snowflake_to_uuid(-1);
\echo :SQLSTATE
