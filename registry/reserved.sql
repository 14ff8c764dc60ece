-- Reservations: worker IDs for databases that do not use the library and are unknown to the registry.
--
-- A reservation is a row in "node" whose bound is 2^63 - 1. No clock passes this bound, so every claim skips the worker ID, even
-- during a quarantine, and no renewal of a different holder replaces the row. Spare worker IDs cannot be reserved, because a
-- failover can lose the reservation. A server could then get the reserved worker ID immediately if it is spare, but only after the
-- quarantine if it is in the ring.

-- Returns the row of a worker ID, locked so that no other session can change it. Raises an error if there is no such worker ID.
CREATE FUNCTION snowflake_registry.lock_node(f snowflake_registry.fleet, datacenter_id integer, worker_id integer)
RETURNS snowflake_registry.node
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n snowflake_registry.node;
    workers constant bigint := (snowflake_registry.division_of(f.worker_bits)).spare;
BEGIN
    PERFORM snowflake_registry.check_argument('datacenter_id',
        lock_node.datacenter_id >= 0 AND lock_node.datacenter_id < 1::bigint << f.datacenter_bits,
        format('Pass a datacenter ID from 0 to %s.', (1::bigint << f.datacenter_bits) - 1));
    PERFORM snowflake_registry.check_argument('worker_id', lock_node.worker_id >= 0 AND lock_node.worker_id < workers,
        format('Pass a worker ID from 0 to %s. Larger worker IDs are spare.', workers - 1));
    SELECT * INTO n FROM snowflake_registry.node AS t
    WHERE t.datacenter_id = lock_node.datacenter_id AND t.worker_id = lock_node.worker_id
    FOR UPDATE;
    RETURN n;
END
$$;

-- Returns the lowest ID that the database may issue.
CREATE FUNCTION snowflake_registry.reserve(worker_id integer, datacenter_id integer DEFAULT 0) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    i snowflake_registry.identity := snowflake_registry.identity_now();
    f snowflake_registry.fleet;
    n snowflake_registry.node;
    now_at timestamptz;
    now_point bigint;
    first_id bigint;
    reserved constant bigint := 9223372036854775807;
BEGIN
    PERFORM snowflake_registry.read_fleet();
    PERFORM snowflake_registry.commit_durably();
    f := snowflake_registry.lock_for_owner();
    now_at := clock_timestamp();
    n := snowflake_registry.lock_node(f, reserve.datacenter_id, reserve.worker_id);
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.begin_life(f, i, NULL, now_at);
    END IF;
    now_point := snowflake_registry.point_of(f, now_at);
    IF n.bound = reserved THEN
        RAISE NOTICE 'worker ID % is already reserved', reserve.worker_id;
        RETURN greatest(n.start, 1);
    ELSIF snowflake_registry.sum_of(n.bound, snowflake_registry.margin(f)) >= now_point THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use',
            MESSAGE = format('worker ID %s is in use', reserve.worker_id),
            DETAIL = format('A server can issue IDs with it until %s.', snowflake_registry.time_of(f, n.bound)),
            HINT = 'Reserve a worker ID that view "snowflake_registry.servers" does not show, or shows as "gone".';
    END IF;
    IF snowflake_registry.in_quarantine(f, now_point) THEN
        RAISE NOTICE USING MESSAGE = 'the fleet is in quarantine',
            DETAIL = 'The registry might have forgotten a server that has this worker ID.',
            HINT = 'Make sure that the database does not issue IDs below the result, unless the worker ID was previously reserved '
                'for this database.';
    END IF;
    first_id := snowflake_registry.start_above(f, greatest(n.bound, f.quarantine_until, f.floor));
    IF n.bound IS NULL THEN
        INSERT INTO snowflake_registry.node AS t
            (datacenter_id, worker_id, holder, nonce, count, life, start, bound, since, seen, lease, about)
        VALUES (reserve.datacenter_id, reserve.worker_id, gen_random_uuid(), gen_random_uuid(), 1, f.life, first_id, reserved, now_at,
            now_at, '10 minutes', '{}');
    ELSE
        PERFORM snowflake_registry.end_tenure(f, n, now_at, 'reserve');
        UPDATE snowflake_registry.node AS t SET
            holder = gen_random_uuid(),
            nonce = gen_random_uuid(),
            count = snowflake_registry.sum_of(n.count, 1),
            life = f.life,
            start = first_id,
            bound = reserved,
            since = now_at,
            seen = now_at,
            lease = '10 minutes',
            about = '{}'
        WHERE t.datacenter_id = reserve.datacenter_id AND t.worker_id = reserve.worker_id;
    END IF;
    RAISE LOG 'worker ID % of datacenter % was reserved by "%"', reserve.worker_id, reserve.datacenter_id, session_user;
    RETURN greatest(first_id, 1);
END
$$;

-- Returns the time from which servers can get the worker ID. The database's IDs are at most one margin ahead of the clock.
CREATE FUNCTION snowflake_registry.release(worker_id integer, datacenter_id integer DEFAULT 0) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    i snowflake_registry.identity := snowflake_registry.identity_now();
    f snowflake_registry.fleet;
    n snowflake_registry.node;
    now_at timestamptz;
BEGIN
    PERFORM snowflake_registry.read_fleet();
    PERFORM snowflake_registry.commit_durably();
    f := snowflake_registry.lock_for_owner();
    now_at := clock_timestamp();
    n := snowflake_registry.lock_node(f, release.datacenter_id, release.worker_id);
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.begin_life(f, i, NULL, now_at);
    END IF;
    IF n.bound IS DISTINCT FROM 9223372036854775807 THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('worker ID %s is not reserved', release.worker_id),
            HINT = 'Pass a worker ID that view "snowflake_registry.servers" shows as "reserved".';
    END IF;
    n.bound := snowflake_registry.sum_of(greatest(n.start, snowflake_registry.point_of(f, now_at)), snowflake_registry.margin(f));
    UPDATE snowflake_registry.node AS t SET bound = n.bound, seen = now_at
    WHERE t.datacenter_id = release.datacenter_id AND t.worker_id = release.worker_id;
    RAISE LOG 'worker ID % of datacenter % was released by "%"', release.worker_id, release.datacenter_id, session_user;
    RETURN snowflake_registry.time_of(f, snowflake_registry.sum_of(n.bound, snowflake_registry.margin(f)));
END
$$;
