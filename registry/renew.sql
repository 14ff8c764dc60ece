-- Whether a renewal proves that the registry has lost changes.
CREATE FUNCTION snowflake_registry.knows_more(
    f snowflake_registry.fleet, n snowflake_registry.node, life bigint, count bigint
) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT life > f.life OR (life = f.life AND (n.holder IS NULL OR n.life < life OR n.count < count))
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
    granted constant text := 'Pass the value that claim() or renew() returned.';
BEGIN
    PERFORM snowflake_registry.check_arguments(renew.fleet, renew.layout, renew.epoch, renew.datacenter, renew.holder, renew.life,
        renew.nonce, renew.clock, renew.lease, renew.about);
    PERFORM snowflake_registry.check_argument('worker', renew.worker >= 0, granted);
    PERFORM snowflake_registry.check_argument('count', renew.count BETWEEN 1 AND 1000000000000, granted);
    PERFORM snowflake_registry.check_argument('next_nonce', renew.next_nonce IS NOT NULL OR NULL, granted);
    PERFORM snowflake_registry.check_argument('bound', renew.bound >= 0, granted);
    PERFORM snowflake_registry.check_argument('start', renew.start BETWEEN 0 AND renew.bound, granted);

    -- This look at the rows, which are not locked yet, decides which lock is needed.
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
    -- Such a bound would take the worker ID out of use for ever.
    IF renew.bound > greatest(CASE WHEN own THEN n.bound END,
        snowflake_registry.sum_of(now_point, snowflake_registry.far(f)))
    THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'argument "bound" is later than anything that the registry can have granted',
            DETAIL = format('The time of the bound is %s, and the clock of the registry shows %s.',
                snowflake_registry.time_of(f, renew.bound), now_at),
            HINT = 'Check the clocks of the servers on which the registry runs or has run.';
    END IF;
    IF NOT exclusive AND (NOT present OR snowflake_registry.moved(f, i)
        OR snowflake_registry.knows_more(f, n, renew.life, renew.count))
    THEN
        RAISE EXCEPTION USING ERRCODE = 'serialization_failure', MESSAGE = 'the registry changed during the renewal',
            HINT = 'Send the renewal again.';
    END IF;

    -- A discontinuity of the registry: first the one that the registry sees itself, then the one that the renewal shows.
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.begin_life(f, i, false, now_at);
    END IF;
    a.life := f.life;
    -- The layout was changed and changed back since this grant began. In between, other servers were granted the IDs above its bound.
    IF renew.start < f.floor THEN
        a.answer := 'lost';
        a.reason := 'given away';
        a.nonce := renew.next_nonce;
        RETURN a;
    END IF;
    IF snowflake_registry.knows_more(f, n, renew.life, renew.count) THEN
        f := snowflake_registry.begin_life(f, i, true, now_at);
    END IF;
    a.life := f.life;

    match := own AND n.nonce IN (renew.nonce, renew.next_nonce);
    -- Whether the renewal is taken over the row.
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
    -- The first renewal in a life has no margin, because the bound might have been given away in what was lost.
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

    a.answer := 'renewed';
    a.nonce := renew.next_nonce;
    a.count := greatest(renew.count, n.count) + CASE WHEN match AND n.nonce = renew.next_nonce THEN 0 ELSE 1 END;
    a.start := CASE WHEN match THEN n.start ELSE renew.start END;
    a.bound := greatest(n.bound, renew.bound, least(
        snowflake_registry.sum_of(renew.clock, snowflake_registry.span_of(f, renew.lease)),
        snowflake_registry.sum_of(snowflake_registry.sum_of(now_point, snowflake_registry.span_of(f, renew.lease)), margin)));
    IF present THEN
        IF NOT own THEN
            PERFORM snowflake_registry.end_tenure(f, n, now_at, 'adoption');
        END IF;
        UPDATE snowflake_registry.node AS t SET holder = renew.holder, nonce = a.nonce, count = a.count, life = a.life,
            start = a.start, bound = a.bound, since = CASE WHEN own THEN n.since ELSE now_at END, seen = now_at,
            lease = renew.lease, about = snowflake_registry.clean_about(renew.about)
        WHERE t.datacenter_id = renew.datacenter AND t.worker_id = renew.worker;
    ELSE
        INSERT INTO snowflake_registry.node
        VALUES (renew.datacenter, renew.worker, renew.holder, a.nonce, a.count, a.life, a.start, a.bound, now_at, now_at,
            renew.lease, snowflake_registry.clean_about(renew.about));
    END IF;
    RETURN a;
END
$$;
