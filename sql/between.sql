-- A SQL function with a RETURN body, STABLE and not STRICT, because the planner inlines only such a function. A query then
-- contains plain comparisons with the primary key, which an index and partition pruning can use.
CREATE FUNCTION snowflake_between(id bigint, start timestamptz, stop timestamptz) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN id >= snowflake_first_id_from(start) AND id <= snowflake_last_id_before(stop);
