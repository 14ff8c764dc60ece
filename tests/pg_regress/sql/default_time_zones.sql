-- No result depends on how a session displays times.
CREATE TEMPORARY TABLE results (
    zone text, style text,
    decoded timestamptz, timestamp timestamptz, described jsonb,
    encoded bigint, min bigint, max bigint, last_before bigint, first_from bigint,
    inside boolean, outside boolean, text snowflake_text,
    decoded_layout timestamptz[], timestamp_layout timestamptz[], encoded_layout bigint[], min_layout bigint[], max_layout bigint[],
    layouts timestamptz[], bounds bigint[], bound_times timestamptz[], made text[]
);
-- As text, so that each is parsed and planned under its own settings. A style reads dates its own way too: only ISO 8601
-- means the same in all.
DO $do$
DECLARE
    zone text;
    style text;
BEGIN
    FOREACH zone IN ARRAY ARRAY['UTC', 'Pacific/Auckland', 'America/St_Johns', 'America/New_York'] LOOP
        FOREACH style IN ARRAY ARRAY['ISO, MDY', 'SQL, DMY', 'German', 'Postgres, YMD'] LOOP
            PERFORM set_config('timezone', zone, true), set_config('datestyle', style, true);
            CREATE TABLE days (id bigint) PARTITION BY RANGE (id);
            EXECUTE $$
                INSERT INTO results
                SELECT current_setting('timezone'), current_setting('datestyle'),
                       created_at, snowflake_timestamp(id), snowflake_describe(id),
                       snowflake_encode(at, worker_id, sequence),
                       snowflake_min_id(at), snowflake_max_id(at), snowflake_last_id_before(at), snowflake_first_id_from(at),
                       snowflake_between(id, at, '2022-06-28 16:07:40.106+00'),
                       snowflake_between(id, '2022-06-28 16:07:40.106+00', 'infinity'),
                       snowflake_to_text(id),
                       ARRAY[(snowflake_decode(id, 'discord')).created_at, (snowflake_decode(id, '41:10:12', since)).created_at],
                       ARRAY[snowflake_timestamp(id, 'discord'), snowflake_timestamp(id, '41:10:12', since)],
                       ARRAY[snowflake_encode(at, 1, 2, 'discord'), snowflake_encode(at, 1, 2, 3, 'discord'),
                             snowflake_encode(at, 1, 2, 'discord', since), snowflake_encode(at, 1, 2, 3, 'discord', since)],
                       ARRAY[snowflake_min_id(at, 'sonyflake'), snowflake_min_id(at, '41:10:12', since)],
                       ARRAY[snowflake_max_id(at, 'sonyflake'), snowflake_max_id(at, '41:10:12', since)],
                       (SELECT array_agg(epoch) || array_agg(last_instant) FROM snowflake_layouts),
                       (SELECT array_agg(from_id) || max(until_id)
                          FROM snowflake_partition_bounds('2024-11-02 00:00Z', '2024-11-05 00:00Z', '1 day')),
                       (SELECT array_agg(from_time) || max(until_time)
                          FROM snowflake_partition_bounds('2024-03-31 12:00Z', '2024-06-30 12:00Z', '1 month')),
                       (SELECT array_agg(made || pg_get_partition_constraintdef(made))
                          FROM snowflake_create_partitions('days', '1 day', 3, '2024-11-02 12:00Z') AS made)
                  FROM (VALUES (1541815603606036480, timestamptz '2022-06-28 16:07:40.105+00',
                                timestamptz '2020-01-01 00:00:00+00')) AS v (id, at, since),
                       LATERAL snowflake_decode(id)
            $$;
            DROP TABLE days;
        END LOOP;
    END LOOP;
END $do$;
SET timezone = 'UTC';
SET datestyle = 'ISO';
SELECT count(*) AS sessions, count(DISTINCT (zone, style)) AS ways_to_display,
       count(DISTINCT (decoded, timestamp, described, encoded, min, max, last_before, first_from, inside, outside, text)) AS results,
       count(DISTINCT (decoded_layout, timestamp_layout, encoded_layout, min_layout, max_layout, layouts)) AS of_layouts,
       count(DISTINCT (bounds, bound_times, made)) AS of_partitions
  FROM results;
SELECT DISTINCT decoded, timestamp, encoded, min, max, last_before, first_from, inside, outside, text FROM results;
SELECT DISTINCT decoded_layout, timestamp_layout = decoded_layout AS same FROM results;
SELECT DISTINCT encoded_layout, min_layout, max_layout FROM results;
SELECT DISTINCT unnest(bounds) AS bound, snowflake_timestamp(unnest(bounds)) AS at FROM results ORDER BY 1;
SELECT DISTINCT unnest(bound_times) AS at FROM results ORDER BY 1;
SELECT DISTINCT unnest(made) AS made FROM results ORDER BY 1;

-- The same instant, shown in three ways; the description is in UTC in all.
SELECT created_at, snowflake_timestamp(1541815603606036480), snowflake_describe(1541815603606036480) ->> 'created_at' AS described
  FROM snowflake_decode(1541815603606036480);
SET timezone = 'Pacific/Auckland';
SET datestyle = 'German';
SELECT created_at, snowflake_timestamp(1541815603606036480), snowflake_describe(1541815603606036480) ->> 'created_at' AS described
  FROM snowflake_decode(1541815603606036480);
SELECT snowflake_decode(175928847299117063, 'discord'), snowflake_timestamp(175928847299117063, 'discord');
SELECT epoch FROM snowflake_layouts WHERE name = 'discord';
SET timezone = 'America/New_York';
SET datestyle = 'Postgres, MDY';
SELECT created_at, snowflake_timestamp(1541815603606036480), snowflake_describe(1541815603606036480) ->> 'created_at' AS described
  FROM snowflake_decode(1541815603606036480);
SELECT snowflake_decode(175928847299117063, 'discord'), snowflake_timestamp(175928847299117063, 'discord');
SELECT epoch FROM snowflake_layouts WHERE name = 'discord';

-- An hour that comes twice when the clocks go back is two hours of IDs: 3,600,000 ms apart.
SET datestyle = 'ISO';
SELECT first, second, (snowflake_min_id(second) - snowflake_min_id(first)) / 4194304 AS ms_apart,
       snowflake_timestamp(snowflake_min_id(first)) = first AS first_again,
       snowflake_timestamp(snowflake_min_id(second)) = second AS second_again
  FROM (VALUES (timestamptz '2024-11-03 05:30Z', timestamptz '2024-11-03 06:30Z')) AS v (first, second);
-- A day of partitions has 24 hours, also where the clocks go back in it.
SELECT from_time, until_time, until_time - from_time = '24:00' AS day
  FROM snowflake_partition_bounds('2024-11-03 00:00Z', '2024-11-05 00:00Z', '1 day');
