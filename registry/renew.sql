-- Renewals. crates/flake/src/fleet/registry_model/renew.rs explains why each rule is needed.

-- Returns true if a renewal proves that the registry has lost changes.
CREATE FUNCTION snowflake_registry.knows_more(
    f snowflake_registry.fleet, n snowflake_registry.node, life bigint, count bigint
) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT life > f.life OR (life = f.life AND (n.holder IS NULL OR n.life < life OR n.count < count))
$$;

-- Stores a renewal. If the holder changes, the record of the previous holder is copied to "history".
CREATE FUNCTION snowflake_registry.store_renewal(
    a snowflake_registry.answer, f snowflake_registry.fleet, n snowflake_registry.node, holder uuid, lease interval, about jsonb,
    now_at timestamptz
) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    said jsonb := snowflake_registry.clean_about(about);
BEGIN
    IF n.holder IS NULL THEN
        INSERT INTO snowflake_registry.node AS t
            (datacenter_id, worker_id, holder, nonce, count, life, start, bound, since, seen, lease, about)
        VALUES (a.datacenter, a.worker, store_renewal.holder, a.nonce, a.count, a.life, a.start, a.bound, now_at, now_at,
            store_renewal.lease, said);
        RETURN;
    END IF;
    IF n.holder <> store_renewal.holder THEN
        PERFORM snowflake_registry.end_tenure(f, n, now_at, 'adoption');
        n.since := now_at;
    END IF;
    UPDATE snowflake_registry.node AS t SET
        holder = store_renewal.holder,
        nonce = a.nonce,
        count = a.count,
        life = a.life,
        start = a.start,
        bound = a.bound,
        since = n.since,
        seen = now_at,
        lease = store_renewal.lease,
        about = said
    WHERE t.datacenter_id = a.datacenter AND t.worker_id = a.worker;
END
$$;

CREATE FUNCTION snowflake_registry.renew(
    fleet uuid, layout text, epoch bigint, datacenter integer, worker integer, holder uuid, count bigint, life bigint, nonce uuid,
    next_nonce uuid, start bigint, bound bigint, clock bigint, lease interval, about jsonb
) RETURNS snowflake_registry.answer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    f snowflake_registry.fleet;
    i snowflake_registry.identity;
    a snowflake_registry.answer;
    n snowflake_registry.node;
    exclusive boolean;
    now_at timestamptz;
    now_point bigint;
    margin bigint;
    present boolean;
    own boolean;
    match boolean;
    expired boolean;
    spare boolean;
    lease_span bigint;
    granted constant text := 'Pass the value that claim() or renew() returned.';
BEGIN
    PERFORM snowflake_registry.check_arguments(renew.fleet, renew.layout, renew.epoch, renew.datacenter, renew.holder, renew.life,
        renew.nonce, renew.clock, renew.lease, renew.about);
    PERFORM snowflake_registry.check_argument('worker', renew.worker >= 0, granted);
    PERFORM snowflake_registry.check_argument('count', renew.count >= 1, granted);
    PERFORM snowflake_registry.check_argument('next_nonce', renew.next_nonce IS NOT NULL OR NULL, granted);
    PERFORM snowflake_registry.check_argument('bound', renew.bound >= 0, granted);
    PERFORM snowflake_registry.check_argument('start', renew.start BETWEEN 0 AND renew.bound, granted);

    -- Read the rows without locking them to determine which lock is needed.
    i := snowflake_registry.identity_now();
    f := snowflake_registry.read_fleet();
    SELECT * INTO n FROM snowflake_registry.node AS t
    WHERE t.datacenter_id = renew.datacenter AND t.worker_id = renew.worker;
    exclusive := n.holder IS NULL OR snowflake_registry.moved(f, i)
        OR snowflake_registry.knows_more(f, n, renew.life, renew.count);

    f := snowflake_registry.lock_fleet(exclusive);
    PERFORM FROM snowflake_registry.node AS t
    WHERE t.datacenter_id = renew.datacenter AND t.worker_id = renew.worker
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND n.holder IS NOT NULL THEN
        PERFORM snowflake_registry.end_sessions(snowflake_registry.lock_holders('10 s'));
    END IF;
    SELECT * INTO n FROM snowflake_registry.node AS t
    WHERE t.datacenter_id = renew.datacenter AND t.worker_id = renew.worker
    FOR UPDATE;
    now_at := clock_timestamp();
    a := snowflake_registry.refusal(f, renew.fleet, renew.layout, renew.epoch, now_at);
    IF a.answer IS NOT NULL THEN
        RETURN a;
    END IF;
    a.datacenter := renew.datacenter;
    a.worker := renew.worker;
    IF renew.datacenter >= 1::bigint << f.datacenter_bits OR renew.worker >= 1::bigint << f.worker_bits THEN
        a.answer := 'refused';
        a.reason := 'range';
        RETURN a;
    END IF;
    IF NOT snowflake_registry.lease_valid(renew.lease) THEN
        a.answer := 'refused';
        a.reason := 'lease';
        RETURN a;
    END IF;
    now_point := snowflake_registry.point_of(f, now_at);
    margin := snowflake_registry.margin(f);
    present := n.holder IS NOT NULL;
    own := present AND n.holder = renew.holder;
    match := own AND n.nonce IN (renew.nonce, renew.next_nonce);
    IF NOT exclusive AND (NOT present OR snowflake_registry.moved(f, i)
        OR snowflake_registry.knows_more(f, n, renew.life, renew.count))
    THEN
        RAISE EXCEPTION USING ERRCODE = 'serialization_failure', MESSAGE = 'the registry changed during the renewal',
            HINT = 'Retry the renewal.';
    END IF;

    -- The registry may have lost changes. Check first whether the registry itself can detect this, and then whether the renewal
    -- proves it.
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.begin_life(f, i, NULL, now_at);
    END IF;
    a.life := f.life;
    -- The layout has been changed and changed back since this grant began. In the meantime, IDs above its bound were granted to
    -- other servers.
    IF renew.start < f.floor THEN
        a.answer := 'lost';
        a.reason := 'given away';
        a.nonce := renew.next_nonce;
        RETURN a;
    END IF;
    IF match IS NOT TRUE
        AND snowflake_registry.implausible(f, now_point, renew.count, renew.start, renew.bound)
    THEN
        a.answer := 'refused';
        a.reason := 'implausible';
        RETURN a;
    END IF;
    -- A server with the current nonce can renew regardless of the other values that it reports. The count is taken from the row,
    -- and a bound that no server can have is lowered.
    renew.bound := least(renew.bound, snowflake_registry.latest_bound(f, now_point));
    renew.count := CASE WHEN match THEN n.count ELSE renew.count END;
    IF snowflake_registry.knows_more(f, n, renew.life, renew.count) THEN
        f := snowflake_registry.begin_life(f, i, renew.life, now_at);
    END IF;
    a.life := f.life;

    -- Decide whether the row or the renewal takes precedence.
    IF present AND NOT match
        AND NOT (own AND n.count < renew.count)
        AND NOT (own AND n.life < f.life AND n.count <= renew.count)
        AND NOT (NOT own AND n.life < f.life AND snowflake_registry.sum_of(n.bound, margin) <= renew.start)
    THEN
        a.answer := CASE WHEN own THEN 'conflict' ELSE 'lost' END;
        a.reason := CASE WHEN own THEN 'clone' ELSE 'given away' END;
        a.nonce := renew.next_nonce;
        a.other := snowflake_registry.other_of(n);
        RETURN a;
    END IF;
    -- The first renewal in a life has no margin, because the IDs above the bound may have been granted to a different server before
    -- the loss.
    IF present AND n.life = f.life THEN
        expired := snowflake_registry.sum_of(greatest(n.bound, renew.bound), margin) < now_point;
    ELSE
        expired := greatest(renew.bound, CASE WHEN own THEN n.bound END) < now_point;
    END IF;
    IF expired THEN
        a.answer := 'lost';
        a.reason := 'expired';
        a.nonce := renew.next_nonce;
        RETURN a;
    END IF;

    spare := renew.worker >= (snowflake_registry.division_of(f.worker_bits)).spare;
    lease_span := snowflake_registry.lease_span(f, renew.worker, renew.lease);
    a.answer := 'renewed';
    a.nonce := renew.next_nonce;
    a.count := CASE WHEN match AND n.nonce = renew.next_nonce THEN n.count
        -- A forged call may have raised a different holder's count.
        ELSE snowflake_registry.sum_of(greatest(renew.count,
            CASE WHEN own THEN n.count ELSE least(coalesce(n.count, 0), snowflake_registry.highest_count(f, now_point)) END), 1) END;
    a.start := CASE WHEN match THEN n.start ELSE renew.start END;
    a.bound := greatest(n.bound, renew.bound, least(
        snowflake_registry.sum_of(renew.clock, lease_span),
        snowflake_registry.sum_of(snowflake_registry.sum_of(now_point, lease_span), margin)));
    PERFORM snowflake_registry.store_renewal(a, f, n, renew.holder, renew.lease, renew.about, now_at);
    -- Outside a quarantine, the server must exchange its spare worker ID for one of the ring.
    IF spare AND NOT snowflake_registry.in_quarantine(f, now_point) THEN
        a.other := jsonb_build_object('leave', true);
    END IF;
    RETURN a;
END
$$;
