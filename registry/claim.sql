-- Claims. crates/flake/src/fleet/registry_model/claim.rs explains why each rule is needed.

-- The worker IDs that a claim can get. Each pair of elements is a range from "first" up to, but not including, "past". Every grant
-- begins one margin above "floor". If "tails" is true, a holder whose renewal was lost can still hold a worker ID whose bound has
-- passed.
CREATE TYPE snowflake_registry.offer AS (
    first bigint[],
    past bigint[],
    floor bigint,
    tails boolean
);

-- A free worker ID, and the first ID of its grant.
CREATE TYPE snowflake_registry.free_worker AS (
    worker bigint,
    start bigint
);

-- Returns the worker IDs that a claim can get now, in the order in which they are examined.
CREATE FUNCTION snowflake_registry.offer_of(f snowflake_registry.fleet, now_point bigint, datacenter integer)
RETURNS snowflake_registry.offer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    d snowflake_registry.division := snowflake_registry.division_of(f.worker_bits);
    r snowflake_registry.ring;
    o snowflake_registry.offer;
    slice bigint;
    size bigint;
BEGIN
    SELECT * INTO r FROM snowflake_registry.ring AS t WHERE t.datacenter_id = offer_of.datacenter;
    r.next_worker := coalesce(r.next_worker, 0);
    r.next_spare := coalesce(r.next_spare, d.spare);
    o.tails := false;
    IF NOT snowflake_registry.in_quarantine(f, now_point) THEN
        o.first := ARRAY[r.next_worker, 0];
        o.past := ARRAY[d.spare, r.next_worker];
        o.floor := greatest(f.quarantine_until, f.floor);
        RETURN o;
    END IF;
    o.first := ARRAY[r.next_spare, d.spare];
    o.past := ARRAY[d.sliced, r.next_spare];
    o.floor := greatest(f.quarantine_before, f.floor);
    -- The quarantine of the spare worker IDs has ended, and so have all of their grants that may have been lost.
    IF snowflake_registry.spare_quarantine_end(f) < now_point THEN
        o.floor := greatest(o.floor, f.spare_until);
        RETURN o;
    END IF;
    o.floor := greatest(o.floor, f.spare_before);
    o.tails := true;
    IF f.spare_closed THEN
        o.first := ARRAY[]::bigint[];
        o.past := ARRAY[]::bigint[];
    END IF;
    -- No timeline since the settled one has granted worker IDs from the slice of the current timeline.
    IF d.slices > 0 AND f.timeline - f.settled <= d.slices THEN
        size := (d.total - d.sliced) / d.slices;
        slice := d.sliced + mod(f.timeline, d.slices) * size;
        o.first := o.first || slice;
        o.past := o.past || slice + size;
    END IF;
    RETURN o;
END
$$;

-- Returns the first worker ID of an offer whose start is below "latest", or a row of NULLs.
CREATE FUNCTION snowflake_registry.find_free(
    f snowflake_registry.fleet, o snowflake_registry.offer, datacenter integer, latest bigint
) RETURNS snowflake_registry.free_worker
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n snowflake_registry.node;
    found_worker snowflake_registry.free_worker;
    worker bigint;
BEGIN
    -- Without this check, a claim would examine every worker ID, which is slow if the worker field is wide.
    IF snowflake_registry.start_above(f, o.floor) >= latest THEN
        RETURN NULL;
    END IF;
    FOR part IN 1 .. cardinality(o.first) LOOP
        worker := o.first[part];
        FOR n IN
            SELECT * FROM snowflake_registry.node AS t
            WHERE t.datacenter_id = find_free.datacenter AND t.worker_id >= o.first[part] AND t.worker_id < o.past[part]
            ORDER BY t.worker_id
        LOOP
            -- A worker ID without a row has never been granted.
            EXIT WHEN n.worker_id > worker;
            found_worker.start := snowflake_registry.start_above(f, greatest(n.bound, o.floor));
            IF found_worker.start < latest
                -- A holder may have renewed its grant shortly before the loss. The clock at that time can have been one margin
                -- behind the current clock.
                AND (NOT o.tails OR snowflake_registry.two_margins_above(f, n.bound) < f.newest_seen)
            THEN
                found_worker.worker := worker;
                RETURN found_worker;
            END IF;
            worker := worker + 1;
        END LOOP;
        IF worker < o.past[part] THEN
            found_worker.worker := worker;
            found_worker.start := snowflake_registry.start_above(f, o.floor);
            RETURN found_worker;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- The part of a refusal that shows the clock of the server.
CREATE FUNCTION snowflake_registry.clock_of(f snowflake_registry.fleet, clock bigint) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT jsonb_build_object('why', format('the clock of the server shows %s', snowflake_registry.time_of(f, clock))) $$;

-- Returns why no worker ID is available, and when one will be. If there are several reasons, the one that lasts longest is
-- returned.
CREATE FUNCTION snowflake_registry.why_none(
    a snowflake_registry.answer, f snowflake_registry.fleet, o snowflake_registry.offer, datacenter integer, clock bigint,
    now_at timestamptz
) RETURNS snowflake_registry.answer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    d snowflake_registry.division := snowflake_registry.division_of(f.worker_bits);
    now_point bigint := snowflake_registry.point_of(f, now_at);
    quarantined boolean := snowflake_registry.in_quarantine(f, now_point);
    quarantine bigint := snowflake_registry.quarantine_end(f);
    floor bigint := snowflake_registry.start_above(f, f.floor);
    -- The worker ID that would be granted to a server whose clock matches the registry's clock.
    free snowflake_registry.free_worker := snowflake_registry.find_free(f, o, datacenter, now_point);
    -- When the first worker ID of the offer becomes free, if all of them are in use.
    first_free bigint;
BEGIN
    SELECT snowflake_registry.start_above(f, greatest(min(t.bound), o.floor)) INTO first_free
    FROM snowflake_registry.node AS t JOIN unnest(o.first, o.past) AS p (first, past)
        ON t.worker_id >= p.first AND t.worker_id < p.past
    WHERE t.datacenter_id = why_none.datacenter
    HAVING count(*) > 0;
    -- The common spare worker IDs become free before the quarantine ends.
    quarantine := CASE WHEN o.tails AND d.spare < d.total THEN snowflake_registry.spare_quarantine_end(f)
        ELSE least(quarantine, first_free) END;
    IF free.worker IS NOT NULL THEN
        a.reason := 'clock';
        a.until := snowflake_registry.time_of(f, free.start);
        a.other := snowflake_registry.clock_of(f, clock);
    ELSIF floor >= now_point AND (NOT quarantined OR floor >= quarantine) THEN
        a.reason := 'floor';
        a.until := snowflake_registry.time_of(f, floor);
    ELSIF quarantined THEN
        a.reason := 'quarantine';
        a.until := snowflake_registry.time_of(f, quarantine);
        a.other := jsonb_build_object('why', f.life_reason, 'since', f.life_since);
    ELSE
        a.reason := 'full';
        a.until := snowflake_registry.time_of(f, first_free);
        a.until := CASE WHEN a.until > now_at THEN a.until END;
    END IF;
    RETURN a;
END
$$;

-- The highest count that a worker ID can have reached: one for each second since the epoch, plus 1,000 to allow for differences
-- between clocks.
CREATE FUNCTION snowflake_registry.highest_count(f snowflake_registry.fleet, now_point bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT 1000 + div((now_point >> f.low_bits)::numeric * f.tick_us, 1000000)::bigint $$;

-- Stores a grant, and copies the record of the previous holder from "node" to "history".
CREATE FUNCTION snowflake_registry.store_claim(
    a snowflake_registry.answer, f snowflake_registry.fleet, holder uuid, lease interval, about jsonb, now_at timestamptz
) RETURNS snowflake_registry.answer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n snowflake_registry.node;
    said jsonb := snowflake_registry.clean_about(about);
BEGIN
    SELECT * INTO n FROM snowflake_registry.node AS t WHERE t.datacenter_id = a.datacenter AND t.worker_id = a.worker;
    IF FOUND THEN
        -- A forged call may have raised the count. The registry would refuse renewals with a count above the highest possible one.
        a.count := 1 + least(n.count, snowflake_registry.highest_count(f, snowflake_registry.point_of(f, now_at)));
        PERFORM snowflake_registry.end_tenure(f, n, now_at, 'claim');
        UPDATE snowflake_registry.node AS t SET
            holder = store_claim.holder,
            nonce = a.nonce,
            count = a.count,
            life = a.life,
            start = a.start,
            bound = a.bound,
            since = now_at,
            seen = now_at,
            lease = store_claim.lease,
            about = said
        WHERE t.datacenter_id = a.datacenter AND t.worker_id = a.worker;
    ELSE
        a.count := 1;
        INSERT INTO snowflake_registry.node AS t
            (datacenter_id, worker_id, holder, nonce, count, life, start, bound, since, seen, lease, about)
        VALUES (a.datacenter, a.worker, store_claim.holder, a.nonce, a.count, a.life, a.start, a.bound, now_at, now_at,
            store_claim.lease, said);
    END IF;
    RETURN a;
END
$$;

-- Lets the next claim start with the following worker ID. Slices are small, so no position is stored for them.
CREATE FUNCTION snowflake_registry.move_on(f snowflake_registry.fleet, datacenter integer, worker bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    d snowflake_registry.division := snowflake_registry.division_of(f.worker_bits);
BEGIN
    INSERT INTO snowflake_registry.ring (datacenter_id, next_worker, next_spare)
    VALUES (datacenter, 0, d.spare) ON CONFLICT DO NOTHING;
    IF worker < d.spare THEN
        UPDATE snowflake_registry.ring AS r SET next_worker = CASE WHEN worker + 1 < d.spare THEN worker + 1 ELSE 0 END
        WHERE r.datacenter_id = move_on.datacenter;
    ELSIF worker < d.sliced THEN
        UPDATE snowflake_registry.ring AS r SET next_spare = CASE WHEN worker + 1 < d.sliced THEN worker + 1 ELSE d.spare END
        WHERE r.datacenter_id = move_on.datacenter;
    END IF;
END
$$;

-- Logs a message if only a few worker IDs of the ring are free.
CREATE FUNCTION snowflake_registry.log_few_free(f snowflake_registry.fleet, datacenter integer, now_point bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    d snowflake_registry.division := snowflake_registry.division_of(f.worker_bits);
    free bigint;
BEGIN
    SELECT d.spare - count(*) INTO free FROM snowflake_registry.node AS t
    WHERE t.datacenter_id = log_few_free.datacenter AND t.worker_id < d.spare
        AND t.bound >= now_point - snowflake_registry.margin(f);
    IF free * 10 < d.spare THEN
        RAISE LOG USING MESSAGE = format('only %s of %s worker IDs of datacenter %s are free', free, d.spare, datacenter),
            HINT = 'The worker IDs of servers that are gone become free when their grants end. To run more servers, use a layout '
                'with a wider worker field.';
    END IF;
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
    o snowflake_registry.offer;
    free snowflake_registry.free_worker;
    now_at timestamptz;
    now_point bigint;
    reach bigint;
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
        f := snowflake_registry.begin_life(f, i, NULL, now_at);
        a.life := f.life;
    END IF;
    now_point := snowflake_registry.point_of(f, now_at);

    -- A server repeats its claim if it has not received the answer. It then receives the same answer.
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

    -- The start must be in the past according to both the registry's clock and the caller's clock.
    o := snowflake_registry.offer_of(f, now_point, claim.datacenter);
    free := snowflake_registry.find_free(f, o, claim.datacenter, least(now_point, claim.clock));
    IF free.worker IS NULL THEN
        RETURN snowflake_registry.why_none(a, f, o, claim.datacenter, claim.clock, now_at);
    END IF;
    -- Otherwise, the grant could not be renewed, and the server would use up a worker ID every two margins. One of the clocks is
    -- wrong.
    reach := snowflake_registry.sum_of(snowflake_registry.lease_span(f, free.worker, claim.lease), snowflake_registry.margin(f));
    IF snowflake_registry.sum_of(claim.clock, reach) < now_point THEN
        a.reason := 'clock';
        a.until := snowflake_registry.time_of(f, now_point - reach);
        a.other := snowflake_registry.clock_of(f, claim.clock);
        RETURN a;
    END IF;
    a.answer := 'claimed';
    a.datacenter := claim.datacenter;
    a.worker := free.worker;
    a.nonce := claim.nonce;
    a.life := f.life;
    a.start := free.start;
    a.bound := snowflake_registry.sum_of(now_point, snowflake_registry.margin(f));
    a := snowflake_registry.store_claim(a, f, claim.holder, claim.lease, claim.about, now_at);
    PERFORM snowflake_registry.move_on(f, claim.datacenter, free.worker);
    IF NOT snowflake_registry.in_quarantine(f, now_point) THEN
        PERFORM snowflake_registry.log_few_free(f, claim.datacenter, now_point);
    END IF;
    RETURN a;
END
$$;
