-- The planner inlines an SQL function only if it has a RETURN body and is STABLE and not STRICT. The query then contains plain
-- comparisons with the primary key, which can use an index and partition pruning.
CREATE FUNCTION snowflake_between(id bigint, start timestamptz, stop timestamptz) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN id >= snowflake_first_id_from(start) AND id <= snowflake_last_id_before(stop);
