-- The worker IDs of a datacenter: the ring, the spare worker IDs and their slices.

-- How the worker IDs of a datacenter are divided. The ring is 0 .. spare - 1. The common part of the spare worker IDs is spare ..
-- sliced - 1. The remaining worker IDs form "slices" slices of equal size.
CREATE TYPE snowflake_registry.division AS (
    spare bigint,
    sliced bigint,
    slices bigint,
    total bigint
);

-- The last quarter of the worker IDs is spare, and half of that quarter is divided into slices. If there are fewer than 8 worker
-- IDs, none are spare.
CREATE FUNCTION snowflake_registry.division_of(worker_bits integer) RETURNS snowflake_registry.division
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT n.total - n.spare, n.total - n.spare / 2, least(n.spare / 2, 32), n.total
    FROM (SELECT 1::bigint << worker_bits AS total, CASE WHEN worker_bits < 3 THEN 0 ELSE 1::bigint << worker_bits - 2 END AS spare) AS n
$$;

-- The number of IDs in a worker ID's lease. The lease of a spare worker ID is short so that its quarantine is short.
CREATE FUNCTION snowflake_registry.lease_span(f snowflake_registry.fleet, worker bigint, lease interval) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT snowflake_registry.span_of(f,
        CASE WHEN worker >= (snowflake_registry.division_of(f.worker_bits)).spare THEN least(lease, interval '1 hour') ELSE lease END)
$$;
