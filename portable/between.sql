-- The bounds of a time range. These functions accept any instant and raise no errors. The planner inlines only the functions that
-- are not STRICT. If the instant is a constant, the planner evaluates the STRICT functions in advance, so the conditions in a plan
-- are short.

-- The first ID at or after an instant. For an instant after the last tick, the result is one above the last ID, or NULL if bigint
-- has no such number.
CREATE OR REPLACE FUNCTION snowflake_portable_first_id_from(at timestamptz, format snowflake_portable_format)
    RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE
        WHEN snowflake_portable_ticks(at, format) <= 0 THEN 0
        WHEN snowflake_portable_ticks(at, format) <= (format).last_tick
            THEN ceil(snowflake_portable_ticks(at, format))::bigint << (format).tick_shift
        WHEN (format).last_id < 9223372036854775807 THEN (format).last_id + 1
    END;

-- The last ID before an instant, or -1 if no ID precedes it.
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

-- The planner inlines this function because it is not STRICT. The query then compares the primary key with two numbers, so that it
-- can use an index and partition pruning.
CREATE OR REPLACE FUNCTION snowflake_between(id bigint, start timestamptz, stop timestamptz)
    RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN id >= snowflake_first_id_from(start) AND id <= snowflake_last_id_before(stop);
