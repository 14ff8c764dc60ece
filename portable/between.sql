-- The bounds of a time range. They accept any instant, and raise no error. The planner inlines only the functions that are not STRICT. If
-- the instant is a constant, the planner replaces calls to the other functions by their results, so a plan shows short conditions.

-- The first ID at or after an instant. After the last tick, it is the number above all IDs, or NULL if bigint has no such number.
CREATE OR REPLACE FUNCTION snowflake_portable_first_id_from(at timestamptz, format snowflake_portable_format)
    RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE
        WHEN snowflake_portable_ticks(at, format) <= 0 THEN 0
        WHEN snowflake_portable_ticks(at, format) <= (format).last_tick
            THEN ceil(snowflake_portable_ticks(at, format))::bigint << (format).tick_shift
        WHEN (format).last_id < 9223372036854775807 THEN (format).last_id + 1
    END;

-- The last ID before an instant, or -1.
CREATE OR REPLACE FUNCTION snowflake_portable_last_id_before(at timestamptz, format snowflake_portable_format)
    RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE
        WHEN snowflake_portable_ticks(at, format) <= 0 THEN -1
        WHEN snowflake_portable_ticks(at, format) <= (format).last_tick
            THEN (ceil(snowflake_portable_ticks(at, format))::bigint << (format).tick_shift) - 1
        ELSE (format).last_id
    END;

CREATE OR REPLACE FUNCTION snowflake_first_id_from(at timestamptz)
    RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN snowflake_portable_first_id_from(at, snowflake_portable_own());

CREATE OR REPLACE FUNCTION snowflake_last_id_before(at timestamptz)
    RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN snowflake_portable_last_id_before(at, snowflake_portable_own());

-- The planner inlines this function, because it is not STRICT. A query then compares the primary key with two numbers, for which it can
-- use an index and prune partitions.
CREATE OR REPLACE FUNCTION snowflake_between(id bigint, start timestamptz, stop timestamptz)
    RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN id >= snowflake_first_id_from(start) AND id <= snowflake_last_id_before(stop);
