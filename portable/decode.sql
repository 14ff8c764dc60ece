-- Functions that decode IDs. They are written in SQL so that the planner can inline them, which leaves only operators in the query.

-- The timestamp field of an ID. Raises an error if the number is not an ID.
CREATE OR REPLACE FUNCTION snowflake_portable_tick(id bigint, format snowflake_portable_format)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1
    RETURN CASE
        WHEN id < 0 OR id > (format).last_id THEN snowflake_portable_not_an_id(id, format)
        ELSE id >> (format).tick_shift
    END;

-- The time at which a tick begins. The days are added separately, because a double precision value cannot represent every
-- millisecond exactly.
CREATE OR REPLACE FUNCTION snowflake_portable_time(tick bigint, format snowflake_portable_format)
    RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1
    RETURN CASE
        WHEN tick > (format).last_dated_tick THEN snowflake_portable_not_dated(tick)
        ELSE ((format).epoch + make_interval(
            days => (tick / (86400000 / (format).tick_ms))::integer,
            secs => (tick % (86400000 / (format).tick_ms) * (format).tick_ms)::double precision / 1000
        )) AT TIME ZONE 'UTC'
    END;

CREATE OR REPLACE FUNCTION snowflake_portable_timestamp(id bigint, format snowflake_portable_format)
    RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1
    RETURN snowflake_portable_time(snowflake_portable_tick(id, format), format);

CREATE OR REPLACE FUNCTION snowflake_portable_field(id bigint, shift integer, max bigint)
    RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1
    RETURN ((id >> shift) & max)::integer;

-- In this database's layout, a part without a field is 0.
CREATE OR REPLACE FUNCTION snowflake_decode(id bigint,
    OUT created_at timestamptz, OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT snowflake_portable_timestamp(id, format),
        snowflake_portable_field(id, (format).datacenter_shift, (format).datacenter_max),
        snowflake_portable_field(id, (format).worker_shift, (format).worker_max),
        snowflake_portable_field(id, (format).sequence_shift, (format).sequence_max)
    FROM (SELECT snowflake_portable_own()) AS own (format);
END;

-- If a layout is passed, a part without a field is NULL. OFFSET 0 keeps the planner from flattening the subquery, so the layout is
-- read only once. PostgreSQL plans an SQL function again each time a different function calls it, so the two forms do not share a
-- function.
CREATE OR REPLACE FUNCTION snowflake_decode(id bigint, layout text,
    OUT created_at timestamptz, OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer)
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT snowflake_portable_timestamp(id, format),
        CASE WHEN (format).datacenter_max > 0
            THEN snowflake_portable_field(id, (format).datacenter_shift, (format).datacenter_max) END,
        CASE WHEN (format).worker_max > 0 THEN snowflake_portable_field(id, (format).worker_shift, (format).worker_max) END,
        snowflake_portable_field(id, (format).sequence_shift, (format).sequence_max)
    FROM (SELECT snowflake_portable_format(layout) OFFSET 0) AS other (format);
END;

CREATE OR REPLACE FUNCTION snowflake_decode(id bigint, layout text, epoch timestamptz,
    OUT created_at timestamptz, OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer)
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT snowflake_portable_timestamp(id, format),
        CASE WHEN (format).datacenter_max > 0
            THEN snowflake_portable_field(id, (format).datacenter_shift, (format).datacenter_max) END,
        CASE WHEN (format).worker_max > 0 THEN snowflake_portable_field(id, (format).worker_shift, (format).worker_max) END,
        snowflake_portable_field(id, (format).sequence_shift, (format).sequence_max)
    FROM (SELECT snowflake_portable_format(layout, snowflake_portable_epoch(epoch)) OFFSET 0) AS other (format);
END;

CREATE OR REPLACE FUNCTION snowflake_timestamp(id bigint)
    RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    RETURN snowflake_portable_timestamp(id, snowflake_portable_own());

CREATE OR REPLACE FUNCTION snowflake_timestamp(id bigint, layout text)
    RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN snowflake_portable_timestamp(id, snowflake_portable_format(layout));

CREATE OR REPLACE FUNCTION snowflake_timestamp(id bigint, layout text, epoch timestamptz)
    RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN snowflake_portable_timestamp(id, snowflake_portable_format(layout, snowflake_portable_epoch(epoch)));
