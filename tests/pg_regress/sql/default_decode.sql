-- What an ID says: the default layout 41:10:12, on fixed numbers.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- Each end of each field, and Twitter's own example: 367597485448 ms * 2^22 + machine 378 * 2^12 + sequence 0.
SELECT what, id, d.*
  FROM (VALUES ('nothing', 0),
               ('sequence 1', 1),
               ('last sequence', 4095),
               ('worker 1', 4096),
               ('last worker', 4190208),
               ('last of the first tick', 4194303),
               ('tick 1', 4194304),
               ('the example', 1541815603606036480),
               ('first of the last tick', 9223372036850581504),
               ('last of all', 9223372036854775807)) AS v (what, id),
       LATERAL snowflake_decode(v.id) AS d
 ORDER BY id;

-- The types of the columns, and the ways to ask for them.
SELECT pg_typeof(created_at), pg_typeof(datacenter_id), pg_typeof(worker_id), pg_typeof(sequence)
  FROM snowflake_decode(0);
SELECT snowflake_decode(1541815603606036480);
SELECT (snowflake_decode(1541815603606036480)).worker_id;
SELECT created_at, worker_id FROM snowflake_decode(id => 1541815603606036480);

SELECT snowflake_timestamp(0), snowflake_timestamp(id => 1541815603606036480), snowflake_timestamp(9223372036854775807);

-- jsonb sorts its keys by length.
SELECT jsonb_pretty(snowflake_describe(1541815603606036480));
SELECT jsonb_pretty(snowflake_describe(0));
SELECT jsonb_pretty(snowflake_describe(id => 9223372036854775807));
SELECT key, jsonb_typeof(value) FROM jsonb_each(snowflake_describe(0)) ORDER BY key;
-- Every digit is there for a reader that takes numbers for float8, and the text is that of the ID.
SELECT id, (described ->> 'id')::bigint = id AS same, described ->> 'text' = snowflake_to_text(id) AS same_text,
       snowflake_from_text(described ->> 'text') = id AS read_back
  FROM unnest('{0, 1541815603606036480, 1766614946411446273, 9223372036854775807}'::bigint[]) AS id,
       snowflake_describe(id) AS described;
-- Of a layout, as snowflake_decode has it: null for what the layout has no field for.
SELECT jsonb_pretty(snowflake_describe(175928847299117063, 'discord'));
SELECT jsonb_pretty(snowflake_describe(16842759, layout => 'mastodon'));
SELECT jsonb_pretty(snowflake_describe(16842759, '39:8s:16@10ms', epoch => '2020-01-01Z'));
SELECT snowflake_describe(1541815603606036480) || '{"datacenter_id": null}'
       = snowflake_describe(1541815603606036480, '41:10:12') AS own_layout;
SELECT snowflake_describe(NULL, 'discord') IS NULL AND snowflake_describe(1, NULL) IS NULL
       AND snowflake_describe(1, 'discord', NULL) IS NULL AS of_nothing_nothing;
SELECT snowflake_describe(-1, 'discord');
SELECT snowflake_describe(1, 'nonsense');

-- NULL has no parts: one row of NULLs, as of any other function that returns a record.
\pset null (null)
SELECT snowflake_decode(NULL), snowflake_describe(NULL), snowflake_timestamp(NULL);
SELECT * FROM snowflake_decode(NULL);
