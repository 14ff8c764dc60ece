-- Describes an ID, its layout and its epoch as JSON. "absent" is the value for a field that the layout does not have. The time
-- comes first because computing it raises the error for a number that is not an ID. The function is STABLE like the functions that
-- it calls, and is inlined into the functions below.
CREATE OR REPLACE FUNCTION snowflake_portable_describe(id bigint, format snowflake_portable_format, absent integer)
    RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE
    RETURN jsonb_build_object(
        'created_at', snowflake_portable_utc(snowflake_portable_timestamp(id, format)),
        'unix_ms', (id >> (format).tick_shift) * (format).tick_ms + (format).epoch_ms,
        'tick', id >> (format).tick_shift,
        'datacenter_id', CASE WHEN (format).datacenter_max = 0 THEN absent
            ELSE snowflake_portable_field(id, (format).datacenter_shift, (format).datacenter_max) END,
        'worker_id', CASE WHEN (format).worker_max = 0 THEN absent
            ELSE snowflake_portable_field(id, (format).worker_shift, (format).worker_max) END,
        'sequence', snowflake_portable_field(id, (format).sequence_shift, (format).sequence_max),
        'id', id::text,
        -- If the number is an ID, least() returns it. Otherwise, least() prevents the planner from raising the error of this
        -- function first.
        'text', snowflake_to_text(least(id, (format).last_id))::text,
        'layout', (format).layout,
        'epoch', snowflake_portable_utc((format).epoch AT TIME ZONE 'UTC')
    );

CREATE OR REPLACE FUNCTION snowflake_describe(id bigint)
    RETURNS jsonb LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN snowflake_portable_describe(id, snowflake_portable_own(), 0);

CREATE OR REPLACE FUNCTION snowflake_describe(id bigint, layout text)
    RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT snowflake_portable_describe(id, format, NULL) FROM (SELECT snowflake_portable_format(layout) OFFSET 0) AS other (format);
END;

CREATE OR REPLACE FUNCTION snowflake_describe(id bigint, layout text, epoch timestamptz)
    RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT snowflake_portable_describe(id, format, NULL)
    FROM (SELECT snowflake_portable_format(layout, snowflake_portable_epoch(epoch)) OFFSET 0) AS other (format);
END;
