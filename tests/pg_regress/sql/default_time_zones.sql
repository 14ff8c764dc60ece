-- No result depends on how a session displays times.
CREATE TEMPORARY TABLE results (
    zone text, style text,
    decoded timestamptz, timestamp timestamptz, described jsonb,
    encoded bigint, min bigint, max bigint, last_before bigint, first_from bigint,
    inside boolean, outside boolean
);
-- As text, so that each is parsed and planned under its own settings. A style reads dates its own way too: only ISO 8601
-- means the same in all.
DO $do$
DECLARE
    zone text;
    style text;
BEGIN
    FOREACH zone IN ARRAY ARRAY['UTC', 'Pacific/Auckland', 'America/St_Johns'] LOOP
        FOREACH style IN ARRAY ARRAY['ISO, MDY', 'SQL, DMY', 'German', 'Postgres, YMD'] LOOP
            PERFORM set_config('timezone', zone, true), set_config('datestyle', style, true);
            EXECUTE $$
                INSERT INTO results
                SELECT current_setting('timezone'), current_setting('datestyle'),
                       created_at, snowflake_timestamp(id), snowflake_describe(id),
                       snowflake_encode(at, worker_id, sequence),
                       snowflake_min_id(at), snowflake_max_id(at), snowflake_last_id_before(at), snowflake_first_id_from(at),
                       snowflake_between(id, at, '2022-06-28 16:07:40.106+00'),
                       snowflake_between(id, '2022-06-28 16:07:40.106+00', 'infinity')
                  FROM (VALUES (1541815603606036480, timestamptz '2022-06-28 16:07:40.105+00')) AS v (id, at),
                       LATERAL snowflake_decode(id)
            $$;
        END LOOP;
    END LOOP;
END $do$;
SET timezone = 'UTC';
SET datestyle = 'ISO';
SELECT count(*) AS sessions, count(DISTINCT (zone, style)) AS ways_to_display,
       count(DISTINCT (decoded, timestamp, described, encoded, min, max, last_before, first_from, inside, outside)) AS results
  FROM results;
SELECT DISTINCT decoded, timestamp, encoded, min, max, last_before, first_from, inside, outside FROM results;

-- The same instant, shown in three ways; the description is in UTC in all.
SELECT created_at, snowflake_timestamp(1541815603606036480), snowflake_describe(1541815603606036480) ->> 'created_at' AS described
  FROM snowflake_decode(1541815603606036480);
SET timezone = 'Pacific/Auckland';
SET datestyle = 'German';
SELECT created_at, snowflake_timestamp(1541815603606036480), snowflake_describe(1541815603606036480) ->> 'created_at' AS described
  FROM snowflake_decode(1541815603606036480);
SET timezone = 'America/New_York';
SET datestyle = 'Postgres, MDY';
SELECT created_at, snowflake_timestamp(1541815603606036480), snowflake_describe(1541815603606036480) ->> 'created_at' AS described
  FROM snowflake_decode(1541815603606036480);

-- An hour that comes twice when the clocks go back is two hours of IDs: 3,600,000 ms apart.
SET datestyle = 'ISO';
SELECT first, second, (snowflake_min_id(second) - snowflake_min_id(first)) / 4194304 AS ms_apart,
       snowflake_timestamp(snowflake_min_id(first)) = first AS first_again,
       snowflake_timestamp(snowflake_min_id(second)) = second AS second_again
  FROM (VALUES (timestamptz '2024-11-03 05:30Z', timestamptz '2024-11-03 06:30Z')) AS v (first, second);
