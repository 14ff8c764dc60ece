-- The functions that servers call.

CREATE FUNCTION snowflake_registry.hello(fleet uuid, layout text, epoch bigint) RETURNS snowflake_registry.answer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    f snowflake_registry.fleet;
    i snowflake_registry.identity;
    a snowflake_registry.answer;
    now_at timestamptz;
BEGIN
    PERFORM snowflake_registry.check_argument('layout', length(hello.layout) <= 100, 'Pass the layout of the server.');
    PERFORM snowflake_registry.check_argument('epoch', hello.epoch >= 0, 'Pass the epoch of the server.');
    -- Nothing is written, and so nothing is locked, unless a life begins. A life that is out of date does no harm: claim() refuses it.
    i := snowflake_registry.identity_now();
    f := snowflake_registry.read_fleet();
    a := snowflake_registry.refusal(f, hello.fleet, hello.layout, hello.epoch, clock_timestamp());
    IF a.answer IS NOT NULL THEN
        RETURN a;
    END IF;
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.lock_fleet(true);
        now_at := clock_timestamp();
        IF snowflake_registry.moved(f, i) THEN
            f := snowflake_registry.begin_life(f, i, false, now_at);
        END IF;
    END IF;
    a.answer := 'hello';
    a.life := f.life;
    a.nonce := gen_random_uuid();
    a.now := clock_timestamp();
    RETURN a;
END
$$;

CREATE FUNCTION snowflake_registry.claim(
    fleet uuid, layout text, epoch bigint, datacenter integer, holder uuid, life bigint, nonce uuid, clock bigint, lease interval,
    about jsonb
) RETURNS snowflake_registry.answer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    f snowflake_registry.fleet;
    i snowflake_registry.identity;
    a snowflake_registry.answer;
    n snowflake_registry.node;
    now_at timestamptz;
    now_point bigint;
    margin bigint;
    quarantine_end bigint;
    in_quarantine boolean;
    total bigint;
    spare bigint;
    first bigint;
    past bigint;
    ring_next bigint;
    lowest bigint;
    latest bigint;
    chosen bigint;
    first_id bigint;
    stop bigint;
    free bigint;
    found_row boolean := false;
BEGIN
    PERFORM snowflake_registry.check_arguments(claim.fleet, claim.layout, claim.epoch, claim.datacenter, claim.holder, claim.life,
        claim.nonce, claim.clock, claim.lease, claim.about);
    i := snowflake_registry.identity_now();
    PERFORM snowflake_registry.read_fleet();
    f := snowflake_registry.lock_fleet(true);
    now_at := clock_timestamp();
    a := snowflake_registry.refusal(f, claim.fleet, claim.layout, claim.epoch, now_at);
    IF a.answer IS NOT NULL THEN
        RETURN a;
    END IF;
    a.answer := 'refused';
    IF claim.datacenter >= 1::bigint << f.datacenter_bits THEN
        a.reason := 'range';
        RETURN a;
    END IF;
    IF NOT snowflake_registry.lease_valid(claim.lease) THEN
        a.reason := 'lease';
        RETURN a;
    END IF;
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.begin_life(f, i, false, now_at);
        a.life := f.life;
    END IF;
    now_point := snowflake_registry.point_of(f, now_at);
    margin := snowflake_registry.margin(f);

    -- The same claim again, whose answer was lost, gets the same answer.
    SELECT * INTO n FROM snowflake_registry.node AS t
    WHERE t.holder = claim.holder AND t.nonce = claim.nonce AND t.datacenter_id = claim.datacenter;
    IF FOUND THEN
        a.answer := 'claimed';
        a.datacenter := n.datacenter_id;
        a.worker := n.worker_id;
        a.nonce := n.nonce;
        a.count := n.count;
        a.life := n.life;
        a.start := n.start;
        a.bound := n.bound;
        RETURN a;
    END IF;
    IF claim.life <> f.life THEN
        a.reason := 'life';
        RETURN a;
    END IF;

    -- During a quarantine, only the last eighth of the worker IDs is given out, because it is not used at other times.
    total := 1::bigint << f.worker_bits;
    spare := total / 8;
    quarantine_end := snowflake_registry.quarantine_end(f);
    in_quarantine := snowflake_registry.in_quarantine(f, now_point);
    IF in_quarantine AND (f.spare_closed OR spare = 0) THEN
        a.reason := 'quarantine';
        a.until := snowflake_registry.time_of(f, quarantine_end);
        a.other := jsonb_build_object('why', f.life_reason, 'since', f.life_since);
        RETURN a;
    END IF;
    IF in_quarantine THEN
        first := total - spare;
        past := total;
        lowest := greatest(f.quarantine_before, f.floor);
    ELSE
        first := 0;
        past := total - spare;
        lowest := greatest(f.quarantine_until, f.floor);
    END IF;
    SELECT CASE WHEN in_quarantine THEN r.next_spare ELSE r.next_worker END INTO ring_next
    FROM snowflake_registry.ring AS r WHERE r.datacenter_id = claim.datacenter;
    ring_next := coalesce(ring_next, first);

    -- A start must have passed by the clock of the registry and by the clock of the caller.
    latest := least(now_point, claim.clock);
    first_id := CASE WHEN lowest = 0 THEN 0 ELSE snowflake_registry.sum_of(lowest, margin) END;
    IF first_id < latest THEN
        <<search>>
        FOR half IN 1 .. 2 LOOP
            chosen := CASE half WHEN 1 THEN ring_next ELSE first END;
            stop := CASE half WHEN 1 THEN past ELSE ring_next END;
            FOR n IN
                SELECT * FROM snowflake_registry.node AS t
                WHERE t.datacenter_id = claim.datacenter AND t.worker_id >= chosen AND t.worker_id < stop
                ORDER BY t.worker_id
            LOOP
                -- A worker ID without a row was never given out.
                EXIT WHEN n.worker_id > chosen;
                IF snowflake_registry.sum_of(greatest(n.bound, lowest), margin) < latest
                    AND (NOT in_quarantine
                        OR snowflake_registry.sum_of(snowflake_registry.sum_of(n.bound, margin), margin) < f.newest_seen)
                THEN
                    found_row := true;
                    first_id := snowflake_registry.sum_of(greatest(n.bound, lowest), margin);
                    EXIT search;
                END IF;
                chosen := chosen + 1;
            END LOOP;
            EXIT search WHEN chosen < stop;
            chosen := NULL;
        END LOOP;
    END IF;

    IF chosen IS NULL THEN
        IF in_quarantine THEN
            a.reason := 'quarantine';
            a.until := snowflake_registry.time_of(f, quarantine_end);
            a.other := jsonb_build_object('why', f.life_reason, 'since', f.life_since);
        ELSIF first_id >= now_point THEN
            a.reason := 'floor';
            a.until := snowflake_registry.time_of(f, first_id);
        ELSE
            a.reason := 'full';
            IF claim.clock < now_point THEN
                a.other := jsonb_build_object('why', format('the clock of the server shows %s',
                    snowflake_registry.time_of(f, claim.clock)));
            END IF;
            SELECT snowflake_registry.time_of(f, snowflake_registry.sum_of(greatest(min(t.bound), lowest), margin)) INTO a.until
            FROM snowflake_registry.node AS t
            WHERE t.datacenter_id = claim.datacenter AND t.worker_id >= first AND t.worker_id < past;
            a.until := CASE WHEN a.until > now_at THEN a.until END;
        END IF;
        RETURN a;
    END IF;

    a.answer := 'claimed';
    a.datacenter := claim.datacenter;
    a.worker := chosen;
    a.nonce := claim.nonce;
    a.count := CASE WHEN found_row THEN n.count + 1 ELSE 1 END;
    a.life := f.life;
    a.start := first_id;
    a.bound := snowflake_registry.sum_of(now_point, margin);
    IF found_row THEN
        PERFORM snowflake_registry.end_tenure(f, n, now_at, 'claim');
        UPDATE snowflake_registry.node AS t SET holder = claim.holder, nonce = a.nonce, count = a.count, life = a.life,
            start = a.start, bound = a.bound, since = now_at, seen = now_at, lease = claim.lease,
            about = snowflake_registry.clean_about(claim.about)
        WHERE t.datacenter_id = claim.datacenter AND t.worker_id = chosen;
    ELSE
        INSERT INTO snowflake_registry.node
        VALUES (claim.datacenter, chosen, claim.holder, a.nonce, a.count, a.life, a.start, a.bound, now_at, now_at, claim.lease,
            snowflake_registry.clean_about(claim.about));
    END IF;
    ring_next := CASE WHEN chosen + 1 < past THEN chosen + 1 ELSE first END;
    INSERT INTO snowflake_registry.ring VALUES (claim.datacenter, 0, total - spare) ON CONFLICT DO NOTHING;
    UPDATE snowflake_registry.ring AS r SET
        next_worker = CASE WHEN in_quarantine THEN r.next_worker ELSE ring_next END,
        next_spare = CASE WHEN in_quarantine THEN ring_next ELSE r.next_spare END
    WHERE r.datacenter_id = claim.datacenter;
    IF NOT in_quarantine THEN
        SELECT past - count(*) INTO free FROM snowflake_registry.node AS t
        WHERE t.datacenter_id = claim.datacenter AND t.worker_id < past AND t.bound >= now_point - margin;
        IF free * 10 < past THEN
            RAISE LOG USING MESSAGE = format('only %s of %s worker IDs of datacenter %s are free', free, past, claim.datacenter),
                HINT = 'Servers that are gone free their worker IDs when their grants end. More servers need a layout with a wider '
                    'worker field.';
        END IF;
    END IF;
    RETURN a;
END
$$;
