-- Renewals that no server can have sent, because the registry has never granted what they contain.

-- The latest bound that can have been granted, assuming that the clock was one margin ahead.
CREATE FUNCTION snowflake_registry.latest_bound(f snowflake_registry.fleet, now_point bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT snowflake_registry.sum_of(snowflake_registry.sum_of(now_point, snowflake_registry.far(f)), snowflake_registry.margin(f))
$$;

-- Returns true if no answer of the registry, not even a lost one, can have contained the values in a renewal. Without this check, a
-- forged call could take over the row of a running server, or make a worker ID permanently unusable.
CREATE FUNCTION snowflake_registry.implausible(
    f snowflake_registry.fleet, now_point bigint, count bigint, start bigint, bound bigint
) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT start >= snowflake_registry.sum_of(now_point, snowflake_registry.margin(f))
        OR bound > snowflake_registry.latest_bound(f, now_point)
        -- The clock may have been set back by one margin since the claim.
        OR count > snowflake_registry.sum_of(snowflake_registry.highest_count(f, now_point), 1000)
$$;
