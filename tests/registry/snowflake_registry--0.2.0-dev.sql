-- The registry as it was before version 0.2.0, without its comments: the state that snowflake_registry--0.2.0-dev--0.2.0.sql upgrades.
DO $install$
BEGIN
    IF to_regclass('snowflake_registry.fleet') IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_object',
            MESSAGE = 'the registry is already installed in this database',
            HINT = 'To see its state, run "SELECT * FROM snowflake_registry.status".';
    END IF;
    IF to_regnamespace('snowflake_registry') IS NULL THEN
        CREATE SCHEMA snowflake_registry;
    END IF;
END
$install$;
REVOKE ALL ON SCHEMA snowflake_registry FROM PUBLIC;
CREATE TABLE snowflake_registry.fleet (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    fleet_id uuid NOT NULL,
    layout text NOT NULL,
    epoch bigint NOT NULL,
    timestamp_bits integer NOT NULL,
    datacenter_bits integer NOT NULL,
    worker_bits integer NOT NULL,
    low_bits integer NOT NULL,
    tick_us bigint NOT NULL,
    life bigint NOT NULL CHECK (life > 0),
    life_since timestamptz NOT NULL,
    life_reason text NOT NULL,
    system_identifier bigint NOT NULL,
    timeline bigint NOT NULL,
    database_oid oid NOT NULL,
    table_oid oid NOT NULL,
    quarantine_until bigint NOT NULL CHECK (quarantine_until >= 0),
    quarantine_before bigint NOT NULL CHECK (quarantine_before >= 0),
    newest_seen bigint NOT NULL CHECK (newest_seen >= 0),
    spare_closed boolean NOT NULL,
    floor bigint NOT NULL CHECK (floor >= 0),
    generation bigint NOT NULL DEFAULT 0 CHECK (generation >= 0)
);
CREATE TABLE snowflake_registry.ring (
    datacenter_id integer PRIMARY KEY,
    next_worker bigint NOT NULL,
    next_spare bigint NOT NULL
);
CREATE TABLE snowflake_registry.node (
    datacenter_id integer NOT NULL,
    worker_id integer NOT NULL,
    holder uuid NOT NULL,
    nonce uuid NOT NULL,
    count bigint NOT NULL CHECK (count > 0),
    life bigint NOT NULL CHECK (life > 0),
    start bigint NOT NULL CHECK (start >= 0),
    bound bigint NOT NULL CHECK (bound >= 0),
    since timestamptz NOT NULL,
    seen timestamptz NOT NULL,
    lease interval NOT NULL,
    about jsonb NOT NULL,
    PRIMARY KEY (datacenter_id, worker_id)
) WITH (fillfactor = 50);
CREATE INDEX node_holder ON snowflake_registry.node (holder);
CREATE TABLE snowflake_registry.history (
    datacenter_id integer NOT NULL,
    worker_id integer NOT NULL,
    holder uuid NOT NULL,
    life bigint NOT NULL,
    start bigint NOT NULL,
    bound bigint NOT NULL,
    since timestamptz NOT NULL,
    seen timestamptz NOT NULL,
    granted_until timestamptz NOT NULL,
    ended timestamptz NOT NULL,
    ended_by text NOT NULL,
    about jsonb NOT NULL
);
CREATE INDEX history_worker ON snowflake_registry.history (datacenter_id, worker_id, ended);
CREATE TABLE snowflake_registry.segment (
    tag text PRIMARY KEY,
    generation bigint NOT NULL,
    next_value bigint NOT NULL CHECK (next_value >= 0),
    step bigint NOT NULL CHECK (step > 0),
    max_step bigint NOT NULL CHECK (max_step >= step),
    top_nonce uuid NOT NULL,
    top_first bigint NOT NULL,
    below_nonce uuid,
    below_first bigint,
    life bigint NOT NULL,
    window_start timestamptz NOT NULL,
    window_used bigint NOT NULL,
    updated_at timestamptz NOT NULL,
    begins_at timestamptz,
    description text
) WITH (fillfactor = 50);
CREATE TABLE snowflake_registry.skip (
    life bigint PRIMARY KEY,
    quarantine bigint NOT NULL,
    since timestamptz NOT NULL,
    lost bigint NOT NULL CHECK (lost >= 0),
    windows bigint NOT NULL CHECK (windows >= 0)
);
CREATE TABLE snowflake_registry.hole (
    tag text NOT NULL,
    generation bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    life bigint NOT NULL,
    skipped_at timestamptz NOT NULL
);
DO $config$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'snowflake_registry') THEN
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.fleet', '');
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.ring', '');
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.node', '');
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.history', '');
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.segment', '');
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.skip', '');
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.hole', '');
    END IF;
END
$config$;
CREATE TYPE snowflake_registry.answer AS (
    answer text,
    reason text,
    datacenter integer,
    worker integer,
    fleet uuid,
    life bigint,
    nonce uuid,
    count bigint,
    start bigint,
    bound bigint,
    until timestamptz,
    now timestamptz,
    other jsonb
);
CREATE TYPE snowflake_registry.block AS (
    answer text,
    reason text,
    fleet uuid,
    life bigint,
    tag text,
    generation bigint,
    first bigint,
    count bigint,
    nonce uuid,
    step bigint,
    max_step bigint,
    until timestamptz,
    now timestamptz
);
CREATE TYPE snowflake_registry.identity AS (
    system_identifier bigint,
    timeline bigint,
    database_oid oid,
    table_oid oid
);
CREATE TYPE snowflake_registry.layout AS (
    layout text,
    timestamp_bits integer,
    datacenter_bits integer,
    worker_bits integer,
    low_bits integer,
    tick_us bigint
);
CREATE FUNCTION snowflake_registry.sum_of(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT CASE WHEN a > 9223372036854775807 - b THEN 9223372036854775807 ELSE a + b END $$;
CREATE FUNCTION snowflake_registry.time_of(point bigint, epoch bigint, low_bits integer, tick_us bigint) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    us numeric := epoch::numeric * 1000 + (point >> low_bits)::numeric * tick_us;
    hour constant numeric := 3600000000;
BEGIN
    IF us > 9200000000000000000 THEN
        RETURN 'infinity';
    END IF;
    RETURN timestamptz '1970-01-01 00:00:00+00' + make_interval(hours => div(us, hour)::integer)
        + mod(us, hour)::double precision * interval '1 microsecond';
END
$$;
CREATE FUNCTION snowflake_registry.point_of(
    t timestamptz, epoch bigint, timestamp_bits integer, low_bits integer, tick_us bigint
) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    tick numeric := floor((extract(epoch FROM t) * 1000000 - epoch::numeric * 1000) / tick_us);
BEGIN
    IF tick < 0 THEN
        RETURN 0;
    END IF;
    IF tick >= 2::numeric ^ timestamp_bits THEN
        RETURN (2::numeric ^ (timestamp_bits + low_bits) - 1)::bigint;
    END IF;
    RETURN tick::bigint << low_bits;
END
$$;
CREATE FUNCTION snowflake_registry.span_of(d interval, low_bits integer, tick_us bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT least(ceil(extract(epoch FROM d) * 1000000 / tick_us) * 2::numeric ^ low_bits, 9223372036854775807)::bigint
$$;
CREATE FUNCTION snowflake_registry.time_of(f snowflake_registry.fleet, point bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.time_of(point, f.epoch, f.low_bits, f.tick_us) $$;
CREATE FUNCTION snowflake_registry.point_of(f snowflake_registry.fleet, t timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.point_of(t, f.epoch, f.timestamp_bits, f.low_bits, f.tick_us) $$;
CREATE FUNCTION snowflake_registry.span_of(f snowflake_registry.fleet, d interval) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.span_of(d, f.low_bits, f.tick_us) $$;
CREATE FUNCTION snowflake_registry.margin(f snowflake_registry.fleet) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.span_of(interval '10 minutes', f.low_bits, f.tick_us) $$;
CREATE FUNCTION snowflake_registry.far(f snowflake_registry.fleet) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.span_of(interval '24 hours 20 minutes', f.low_bits, f.tick_us) $$;
CREATE FUNCTION snowflake_registry.parse_layout(text text) RETURNS snowflake_registry.layout
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    result snowflake_registry.layout;
    part text[];
    tick text;
    sequence integer;
    hint constant text := 'Pass field widths in bits, such as "41:10:12" or "39:8s:16@10ms". To see the field widths and the epoch '
        'of a named layout, run "SELECT name, bits, epoch FROM snowflake_layouts" on a server that has snowflake_pg.';
BEGIN
    IF parse_layout.text IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'layout must not be null', HINT = hint;
    END IF;
    part := regexp_match(lower(btrim(left(parse_layout.text, 100))),
        '^0*([0-9]{1,2}):0*([0-9]{1,2})(s?):0*([0-9]{1,2})(?::0*([0-9]{1,2}))?(?:@(1ms|10ms|1s))?$');
    IF part IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid layout: "%s"', left(parse_layout.text, 100)), HINT = hint;
    END IF;
    tick := coalesce(part[6], '1ms');
    result.tick_us := CASE tick WHEN '1ms' THEN 1000 WHEN '10ms' THEN 10000 ELSE 1000000 END;
    result.timestamp_bits := part[1];
    IF part[3] = 's' THEN
        sequence := part[2];
        result.datacenter_bits := CASE WHEN part[5] IS NULL THEN 0 ELSE part[4]::integer END;
        result.worker_bits := coalesce(part[5], part[4]);
    ELSE
        sequence := coalesce(part[5], part[4]);
        result.datacenter_bits := CASE WHEN part[5] IS NULL THEN 0 ELSE part[2]::integer END;
        result.worker_bits := CASE WHEN part[5] IS NULL THEN part[2] ELSE part[4] END;
    END IF;
    result.low_bits := result.datacenter_bits + result.worker_bits + sequence;
    IF result.timestamp_bits < 1 OR sequence < 1 OR greatest(result.datacenter_bits, result.worker_bits, sequence) > 31
        OR result.timestamp_bits + result.low_bits > 63
    THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid layout: "%s"', left(parse_layout.text, 100)),
            DETAIL = 'The timestamp and the sequence must have at least 1 bit each, the other fields at most 31 bits each, and all '
                'fields together at most 63 bits.',
            HINT = hint;
    END IF;
    result.layout := part[1]::integer || ':' || part[2]::integer || part[3] || ':' || part[4]::integer
        || coalesce(':' || part[5]::integer, '') || CASE WHEN tick = '1ms' THEN '' ELSE '@' || tick END;
    RETURN result;
END
$$;
CREATE FUNCTION snowflake_registry.epoch_ms(epoch timestamptz) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF epoch IS NULL THEN
        RETURN 1288834974657;
    END IF;
    IF epoch < timestamptz '1970-01-01 00:00:00+00' OR epoch >= timestamptz '2200-01-01 00:00:00+00'
        OR epoch <> date_trunc('milliseconds', epoch)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('invalid epoch: "%s"', epoch),
            HINT = 'Pass a time from 1970-01-01 to 2199-12-31 UTC in whole milliseconds.';
    END IF;
    RETURN (extract(epoch FROM epoch_ms.epoch) * 1000)::bigint;
END
$$;
CREATE FUNCTION snowflake_registry.identity_now() RETURNS snowflake_registry.identity
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    result snowflake_registry.identity;
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction', MESSAGE = 'the registry is on a standby',
            HINT = 'Connect to the primary, for example with "target_session_attrs=read-write" in the connection string.';
    END IF;
    SELECT c.system_identifier INTO STRICT result.system_identifier FROM pg_control_system() AS c;
    result.timeline := ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint;
    SELECT d.oid INTO STRICT result.database_oid FROM pg_database AS d WHERE d.datname = current_database();
    result.table_oid := 'snowflake_registry.fleet'::regclass;
    RETURN result;
END
$$;
CREATE FUNCTION snowflake_registry.moved(f snowflake_registry.fleet, i snowflake_registry.identity) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT (f.system_identifier, f.timeline, f.database_oid, f.table_oid)
        IS DISTINCT FROM (i.system_identifier, i.timeline, i.database_oid, i.table_oid)
$$;
CREATE FUNCTION snowflake_registry.read_fleet() RETURNS snowflake_registry.fleet
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    f snowflake_registry.fleet;
BEGIN
    SELECT * INTO f FROM snowflake_registry.fleet;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = 'the registry has no fleet',
            HINT = 'As the owner of the registry, run "SELECT snowflake_registry.create_fleet(layout)" with the layout of the servers.';
    END IF;
    RETURN f;
END
$$;
CREATE FUNCTION snowflake_registry.commit_durably() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF current_setting('client_min_messages') = 'error' THEN
        PERFORM set_config('client_min_messages', 'warning', true);
    END IF;
END
$$;
CREATE FUNCTION snowflake_registry.lock_fleet(exclusive boolean) RETURNS snowflake_registry.fleet
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    f snowflake_registry.fleet;
BEGIN
    PERFORM snowflake_registry.commit_durably();
    IF current_setting('idle_in_transaction_session_timeout')::interval NOT BETWEEN interval '1 ms' AND interval '10 s' THEN
        PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    END IF;
    IF exclusive THEN
        SELECT * INTO STRICT f FROM snowflake_registry.fleet FOR UPDATE;
    ELSE
        SELECT * INTO STRICT f FROM snowflake_registry.fleet FOR SHARE;
    END IF;
    RETURN f;
END
$$;
CREATE FUNCTION snowflake_registry.quarantine_end(f snowflake_registry.fleet) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.sum_of(f.quarantine_until, snowflake_registry.margin(f)) $$;
CREATE FUNCTION snowflake_registry.in_quarantine(f snowflake_registry.fleet, point bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT f.quarantine_until > 0 AND point <= snowflake_registry.quarantine_end(f) $$;
CREATE FUNCTION snowflake_registry.lost_windows(since interval, steps bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT least((2 * steps - 1)
        * (floor(greatest(extract(epoch FROM since), 0) / 600) + 3 + steps), 9223372036854775807)::bigint
$$;
CREATE FUNCTION snowflake_registry.begin_life(
    f snowflake_registry.fleet, i snowflake_registry.identity, told boolean, now_at timestamptz, why text DEFAULT NULL
) RETURNS snowflake_registry.fleet
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    now_point bigint := snowflake_registry.point_of(f, now_at);
    newest bigint;
    newest_at timestamptz;
    steps bigint;
    windows bigint;
    quarantined boolean;
    stale boolean;
    same_server boolean := (f.system_identifier, f.database_oid, f.table_oid)
        IS NOT DISTINCT FROM (i.system_identifier, i.database_oid, i.table_oid);
    reason text;
BEGIN
    SELECT coalesce(snowflake_registry.point_of(f, max(n.seen)), 0), greatest(max(n.seen), f.life_since) INTO newest, newest_at
    FROM snowflake_registry.node AS n;
    steps := CASE WHEN same_server AND NOT told AND i.timeline > f.timeline THEN i.timeline - f.timeline ELSE 8 END;
    windows := snowflake_registry.lost_windows(now_at - newest_at, steps);
    quarantined := snowflake_registry.in_quarantine(f, now_point);
    stale := snowflake_registry.in_quarantine(f, newest);
    reason := CASE
        WHEN why IS NOT NULL THEN why
        WHEN NOT same_server THEN 'the registry is in another cluster or database than before'
        WHEN i.timeline <> f.timeline THEN format('timeline %s follows timeline %s', i.timeline, f.timeline)
        ELSE 'a server knew of renewals that the registry has lost'
    END;
    UPDATE snowflake_registry.fleet AS u SET
        life = f.life + 1,
        life_since = now_at,
        life_reason = reason,
        system_identifier = i.system_identifier,
        timeline = i.timeline,
        database_oid = i.database_oid,
        table_oid = i.table_oid,
        quarantine_before = CASE WHEN quarantined THEN f.quarantine_before ELSE f.quarantine_until END,
        quarantine_until = greatest(f.quarantine_until,
            snowflake_registry.sum_of(now_point, snowflake_registry.far(f))),
        newest_seen = newest,
        spare_closed = quarantined OR stale OR told OR NOT same_server OR i.timeline <> f.timeline + 1
    RETURNING u.* INTO STRICT f;
    INSERT INTO snowflake_registry.skip AS k
    VALUES (f.life,
        coalesce((SELECT q.quarantine FROM snowflake_registry.skip AS q WHERE quarantined ORDER BY q.life DESC LIMIT 1), f.life),
        now_at, windows, windows)
    ON CONFLICT ON CONSTRAINT skip_pkey DO UPDATE
        SET quarantine = excluded.quarantine, since = excluded.since, lost = excluded.lost, windows = excluded.windows;
    RAISE LOG USING MESSAGE = format('life %s of fleet %s begins: %s', f.life, f.fleet_id, reason),
        DETAIL = format('The quarantine ends at %s.',
            snowflake_registry.time_of(f, snowflake_registry.quarantine_end(f)));
    RETURN f;
END
$$;
CREATE FUNCTION snowflake_registry.clean_about(about jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF about IS NULL OR jsonb_typeof(about) <> 'object' THEN
        RETURN '{}';
    END IF;
    RETURN (
        SELECT coalesce(jsonb_object_agg(left(k.key, 63), left(k.value #>> '{}', 1024)), '{}')
        FROM (
            SELECT e.key, e.value FROM jsonb_each(about) AS e
            WHERE jsonb_typeof(e.value) IN ('string', 'number', 'boolean')
            ORDER BY e.key COLLATE "C" LIMIT 16
        ) AS k
    );
END
$$;
CREATE FUNCTION snowflake_registry.about_number(about jsonb, key text) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT CASE WHEN about ->> key ~ '^-?[0-9]{1,15}$' THEN (about ->> key)::bigint END $$;
CREATE FUNCTION snowflake_registry.other_of(n snowflake_registry.node) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT jsonb_build_object(
        'host', n.about ->> 'host',
        'port', snowflake_registry.about_number(n.about, 'port'),
        'data_directory', n.about ->> 'data_directory',
        'since', n.since,
        'seen', n.seen
    )
$$;
CREATE FUNCTION snowflake_registry.check_argument(name text, valid boolean, hint text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF valid IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = format('argument "%s" must not be null', name),
            HINT = hint;
    ELSIF NOT valid THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('argument "%s" is out of range', name),
            HINT = hint;
    END IF;
END
$$;
CREATE FUNCTION snowflake_registry.check_arguments(
    fleet uuid, layout text, epoch bigint, datacenter integer, holder uuid, life bigint, nonce uuid, clock bigint, lease interval,
    about jsonb
) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    any_value constant text := 'Only servers with snowflake_pg call this function.';
    positive constant text := 'Pass a value that hello() or claim() returned.';
BEGIN
    PERFORM snowflake_registry.check_argument('fleet', fleet IS NOT NULL OR NULL, positive);
    PERFORM snowflake_registry.check_argument('layout', length(layout) <= 100, any_value);
    PERFORM snowflake_registry.check_argument('epoch', epoch >= 0, any_value);
    PERFORM snowflake_registry.check_argument('datacenter', datacenter >= 0, any_value);
    PERFORM snowflake_registry.check_argument('holder', holder IS NOT NULL OR NULL, any_value);
    PERFORM snowflake_registry.check_argument('life', life BETWEEN 1 AND 1000000000000, positive);
    PERFORM snowflake_registry.check_argument('nonce', nonce IS NOT NULL OR NULL, positive);
    PERFORM snowflake_registry.check_argument('clock', clock >= 0, 'Pass the first ID of the present tick.');
    PERFORM snowflake_registry.check_argument('lease', lease IS NOT NULL OR NULL, any_value);
    PERFORM snowflake_registry.check_argument('about', about IS NULL OR pg_column_size(about) <= 65536, 'Pass at most 64 kB.');
END
$$;
CREATE FUNCTION snowflake_registry.refusal(
    f snowflake_registry.fleet, fleet uuid, layout text, epoch bigint, now_at timestamptz
) RETURNS snowflake_registry.answer
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    a snowflake_registry.answer;
BEGIN
    a.fleet := f.fleet_id;
    a.life := f.life;
    a.now := now_at;
    IF refusal.fleet <> f.fleet_id THEN
        a.reason := 'foreign fleet';
    ELSIF (refusal.layout, refusal.epoch) IS DISTINCT FROM (f.layout, f.epoch) THEN
        a.reason := 'layout';
        a.other := jsonb_build_object('layout', f.layout, 'epoch', f.epoch);
    END IF;
    IF a.reason IS NOT NULL THEN
        a.answer := 'refused';
    END IF;
    RETURN a;
END
$$;
CREATE FUNCTION snowflake_registry.lease_valid(lease interval) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT lease BETWEEN interval '10 minutes' AND interval '24 hours' $$;
CREATE FUNCTION snowflake_registry.end_tenure(
    f snowflake_registry.fleet, n snowflake_registry.node, now_at timestamptz, ended_by text
) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO snowflake_registry.history
        (datacenter_id, worker_id, holder, life, start, bound, since, seen, granted_until, ended, ended_by, about)
    VALUES (n.datacenter_id, n.worker_id, n.holder, n.life, n.start, n.bound, n.since, n.seen,
        snowflake_registry.time_of(f, n.bound), now_at, ended_by, n.about)
$$;
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
    i := snowflake_registry.identity_now();
    f := snowflake_registry.read_fleet();
    SELECT * INTO n FROM snowflake_registry.node AS t
    WHERE t.datacenter_id = renew.datacenter AND t.worker_id = renew.worker;
    exclusive := n.holder IS NULL OR snowflake_registry.moved(f, i)
        OR snowflake_registry.knows_more(f, n, renew.life, renew.count);
    f := snowflake_registry.lock_fleet(exclusive);
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
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.begin_life(f, i, false, now_at);
    END IF;
    a.life := f.life;
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
CREATE FUNCTION snowflake_registry.check_tag(tag text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM snowflake_registry.check_argument('tag', octet_length(check_tag.tag) BETWEEN 1 AND 200, 'Pass a tag of 1 to 200 bytes.');
END
$$;
CREATE FUNCTION snowflake_registry.check_array(name text, items anyarray, length integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM snowflake_registry.check_argument(name, CASE WHEN coalesce(array_ndims(items), 1) > 1 OR length > 10000 THEN false
        ELSE cardinality(items) = length AND array_position(items, NULL) IS NULL END,
        'Pass three arrays of the same length, of at most 10000 elements, without NULLs.');
END
$$;
CREATE FUNCTION snowflake_registry.enter(fleet uuid, tag_changes boolean) RETURNS snowflake_registry.fleet
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    i snowflake_registry.identity := snowflake_registry.identity_now();
    f snowflake_registry.fleet := snowflake_registry.read_fleet();
    exclusive boolean := tag_changes OR snowflake_registry.moved(f, i);
BEGIN
    IF enter.fleet <> f.fleet_id THEN
        RETURN f;
    END IF;
    f := snowflake_registry.lock_fleet(exclusive);
    IF snowflake_registry.moved(f, i) THEN
        IF NOT exclusive THEN
            RAISE EXCEPTION USING ERRCODE = 'serialization_failure', MESSAGE = 'the registry changed during the call',
                HINT = 'Send the request again.';
        END IF;
        f := snowflake_registry.begin_life(f, i, false, clock_timestamp());
    END IF;
    RETURN f;
END
$$;
CREATE FUNCTION snowflake_registry.lock_segment(tag text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '250ms'
AS $$
BEGIN
    PERFORM FROM snowflake_registry.segment AS t WHERE t.tag = lock_segment.tag FOR UPDATE;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$$;
CREATE FUNCTION snowflake_registry.block_answer(f snowflake_registry.fleet, fleet uuid, tag text) RETURNS snowflake_registry.block
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    b snowflake_registry.block;
BEGIN
    b.fleet := f.fleet_id;
    b.life := f.life;
    b.tag := block_answer.tag;
    b.now := clock_timestamp();
    IF block_answer.fleet <> f.fleet_id THEN
        b.answer := 'refused';
        b.reason := 'foreign fleet';
    END IF;
    RETURN b;
END
$$;
CREATE FUNCTION snowflake_registry.pending_skip(s snowflake_registry.segment) RETURNS numeric
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(sum(k.windows), 0) * 64 * s.max_step FROM snowflake_registry.skip AS k WHERE k.life > s.life
$$;
CREATE FUNCTION snowflake_registry.apply_skip(
    f snowflake_registry.fleet, s snowflake_registry.segment, least_next bigint, now_at timestamptz
) RETURNS snowflake_registry.segment
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    first bigint := s.next_value;
BEGIN
    s.next_value := greatest(least(first + snowflake_registry.pending_skip(s), 9223372036854775807), least_next)::bigint;
    s.life := f.life;
    IF s.next_value > first THEN
        INSERT INTO snowflake_registry.hole (tag, generation, first, last, life, skipped_at)
        VALUES (s.tag, s.generation, first, s.next_value - 1, f.life, now_at);
        RAISE LOG USING MESSAGE = format('tag "%s" skips the numbers from %s to %s', s.tag, first, s.next_value - 1),
            DETAIL = format('The registry might have forgotten blocks with these numbers. Life %s: %s.', f.life, f.life_reason);
    END IF;
    RETURN s;
END
$$;
CREATE FUNCTION snowflake_registry.take(fleet uuid, tag text, nonce uuid, want bigint) RETURNS snowflake_registry.block
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    f snowflake_registry.fleet;
    s snowflake_registry.segment;
    b snowflake_registry.block;
    margin constant interval := '10 minutes';
    free bigint;
    began timestamptz;
    used bigint;
    skipped numeric;
BEGIN
    PERFORM snowflake_registry.check_argument('fleet', take.fleet IS NOT NULL OR NULL, 'Pass the fleet that hello() returned.');
    PERFORM snowflake_registry.check_tag(take.tag);
    PERFORM snowflake_registry.check_argument('nonce', take.nonce IS NOT NULL OR NULL, 'Pass a new UUID for each block.');
    PERFORM snowflake_registry.check_argument('want', take.want > 0, 'Pass how many numbers the block is to have.');
    f := snowflake_registry.enter(take.fleet, false);
    b := snowflake_registry.block_answer(f, take.fleet, take.tag);
    IF b.answer IS NOT NULL THEN
        RETURN b;
    END IF;
    b.answer := 'refused';
    IF NOT snowflake_registry.lock_segment(take.tag) THEN
        b.reason := 'locked';
        RETURN b;
    END IF;
    SELECT * INTO s FROM snowflake_registry.segment AS t WHERE t.tag = take.tag;
    b.now := clock_timestamp();
    IF s.tag IS NULL THEN
        b.reason := 'unknown tag';
        RETURN b;
    END IF;
    b.generation := s.generation;
    b.step := s.step;
    b.max_step := s.max_step;
    IF s.top_nonce = take.nonce THEN
        b.answer := 'taken';
        b.nonce := take.nonce;
        b.first := s.top_first;
        b.count := s.next_value - s.top_first;
        RETURN b;
    END IF;
    skipped := snowflake_registry.pending_skip(s);
    free := greatest(9223372036854775807 - s.next_value - skipped, 0)::bigint;
    IF free = 0 THEN
        b.reason := 'exhausted';
        RETURN b;
    END IF;
    IF b.now >= s.window_start + margin OR b.now + margin < s.window_start THEN
        began := b.now;
        used := 0;
    ELSE
        began := s.window_start;
        used := s.window_used;
    END IF;
    IF used >= 64 * s.max_step THEN
        b.reason := 'wait';
        b.until := began + margin;
        RETURN b;
    END IF;
    b.count := least(greatest(s.step, least(take.want, s.max_step)), 64 * s.max_step - used, free);
    b.answer := 'taken';
    b.nonce := take.nonce;
    s.below_nonce := CASE WHEN skipped = 0 THEN s.top_nonce END;
    s.below_first := CASE WHEN skipped = 0 THEN s.top_first END;
    s := snowflake_registry.apply_skip(f, s, 0, b.now);
    b.first := s.next_value;
    UPDATE snowflake_registry.segment AS t SET next_value = b.first + b.count, top_nonce = take.nonce, top_first = b.first,
        below_nonce = s.below_nonce, below_first = s.below_first, life = f.life, window_start = began,
        window_used = used + b.count, updated_at = b.now
    WHERE t.tag = take.tag;
    RETURN b;
END
$$;
CREATE FUNCTION snowflake_registry.give_back(fleet uuid, tag text, generation bigint, nonce uuid, first bigint, last bigint)
RETURNS snowflake_registry.block
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    f snowflake_registry.fleet;
    s snowflake_registry.segment;
    b snowflake_registry.block;
    whole boolean;
    taken constant text := 'Pass what take() returned.';
BEGIN
    PERFORM snowflake_registry.check_argument('fleet', give_back.fleet IS NOT NULL OR NULL, 'Pass the fleet that hello() returned.');
    PERFORM snowflake_registry.check_tag(give_back.tag);
    PERFORM snowflake_registry.check_argument('generation', give_back.generation > 0, taken);
    PERFORM snowflake_registry.check_argument('nonce', give_back.nonce IS NOT NULL OR NULL, taken);
    PERFORM snowflake_registry.check_argument('first', give_back.first >= 0, taken);
    PERFORM snowflake_registry.check_argument('last', give_back.last BETWEEN give_back.first AND 9223372036854775806, taken);
    f := snowflake_registry.enter(give_back.fleet, false);
    b := snowflake_registry.block_answer(f, give_back.fleet, give_back.tag);
    IF b.answer IS NOT NULL THEN
        RETURN b;
    END IF;
    b.answer := 'refused';
    IF NOT snowflake_registry.lock_segment(give_back.tag) THEN
        b.reason := 'locked';
        RETURN b;
    END IF;
    SELECT * INTO s FROM snowflake_registry.segment AS t WHERE t.tag = give_back.tag;
    b.now := clock_timestamp();
    IF s.tag IS NULL THEN
        b.reason := 'unknown tag';
        RETURN b;
    END IF;
    b.generation := s.generation;
    IF s.generation <> give_back.generation THEN
        b.reason := 'generation';
        RETURN b;
    END IF;
    IF s.top_nonce <> give_back.nonce OR give_back.last <> s.next_value - 1 OR give_back.first < s.top_first
        OR snowflake_registry.pending_skip(s) > 0
    THEN
        b.reason := 'not the top';
        RETURN b;
    END IF;
    whole := give_back.first = s.top_first AND s.below_nonce IS NOT NULL;
    UPDATE snowflake_registry.segment AS t SET next_value = give_back.first,
        top_nonce = CASE WHEN whole THEN s.below_nonce ELSE gen_random_uuid() END,
        top_first = CASE WHEN whole THEN s.below_first ELSE give_back.first END,
        below_nonce = NULL, below_first = NULL, updated_at = b.now
    WHERE t.tag = give_back.tag;
    b.answer := 'given back';
    b.first := give_back.first;
    b.count := give_back.last - give_back.first + 1;
    RETURN b;
END
$$;
CREATE FUNCTION snowflake_registry.report(fleet uuid, tags text[], generations bigint[], lasts bigint[])
RETURNS SETOF snowflake_registry.block
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    i snowflake_registry.identity;
    f snowflake_registry.fleet;
    s snowflake_registry.segment;
    b snowflake_registry.block;
    common snowflake_registry.block;
    lost numeric;
    r record;
BEGIN
    PERFORM snowflake_registry.check_argument('fleet', report.fleet IS NOT NULL OR NULL, 'Pass the fleet that hello() returned.');
    PERFORM snowflake_registry.check_array('tags', report.tags, cardinality(report.tags)),
        snowflake_registry.check_array('generations', report.generations, cardinality(report.tags)),
        snowflake_registry.check_array('lasts', report.lasts, cardinality(report.tags));
    i := snowflake_registry.identity_now();
    f := snowflake_registry.read_fleet();
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.enter(report.fleet, false);
    END IF;
    common := snowflake_registry.block_answer(f, report.fleet, NULL);
    IF common.answer IS NOT NULL THEN
        RETURN NEXT common;
        RETURN;
    END IF;
    FOR r IN
        SELECT u.tag, u.generation, u.last, t.generation AS known, t.next_value
        FROM unnest(report.tags, report.generations, report.lasts) AS u (tag, generation, last)
            LEFT JOIN snowflake_registry.segment AS t ON t.tag = u.tag
        ORDER BY u.tag COLLATE "C", u.generation, u.last
    LOOP
        b := common;
        b.tag := r.tag;
        b.generation := r.generation;
        b.answer := 'current';
        IF r.known IS NOT NULL AND r.known = r.generation AND r.last >= r.next_value THEN
            f := snowflake_registry.enter(report.fleet, false);
            b.life := f.life;
            SELECT * INTO s FROM snowflake_registry.segment AS t WHERE t.tag = r.tag FOR UPDATE;
            r.known := s.generation;
            IF r.known = r.generation AND r.last >= s.next_value THEN
                SELECT coalesce(sum(k.lost), 0) * 64 * s.max_step INTO lost FROM snowflake_registry.skip AS k;
                IF r.last < least(s.next_value + snowflake_registry.pending_skip(s) + lost, 9223372036854775807) THEN
                    s := snowflake_registry.apply_skip(f, s, r.last + 1, b.now);
                    UPDATE snowflake_registry.segment AS t SET next_value = s.next_value, top_nonce = gen_random_uuid(),
                        top_first = s.next_value, below_nonce = NULL, below_first = NULL, life = s.life, updated_at = b.now
                    WHERE t.tag = r.tag;
                    b.answer := 'raised';
                ELSE
                    RAISE LOG USING MESSAGE = format('a server has a block of tag "%s" that ends at %s', r.tag, r.last),
                        DETAIL = format('The registry cannot have given it: the next number is %s.', s.next_value);
                    b.answer := 'refused';
                    b.reason := 'ahead';
                END IF;
            END IF;
        END IF;
        IF r.known IS NULL THEN
            b.answer := 'refused';
            b.reason := 'unknown tag';
        ELSIF r.known <> r.generation THEN
            b.answer := 'refused';
            b.reason := 'generation';
        END IF;
        RETURN NEXT b;
    END LOOP;
END
$$;
CREATE FUNCTION snowflake_registry.insert_segment(
    f snowflake_registry.fleet, tag text, start bigint, step bigint, max_step bigint, life bigint, now_at timestamptz,
    begins_at timestamptz, description text
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    nonce uuid := gen_random_uuid();
    next_generation bigint := greatest(f.generation, floor(extract(epoch FROM now_at) * 1000000)::bigint) + 1
        + ('x' || right(nonce::text, 5))::bit(20)::integer;
BEGIN
    UPDATE snowflake_registry.fleet SET generation = next_generation;
    INSERT INTO snowflake_registry.segment (tag, generation, next_value, step, max_step, top_nonce, top_first, life, window_start,
        window_used, updated_at, begins_at, description)
    VALUES (insert_segment.tag, next_generation, insert_segment.start, insert_segment.step, insert_segment.max_step, nonce,
        insert_segment.start, insert_segment.life, now_at, 0, now_at, insert_segment.begins_at, insert_segment.description);
    RETURN next_generation;
END
$$;
CREATE FUNCTION snowflake_registry.check_sizes(start bigint, step bigint, max_step bigint) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    most constant bigint := 1000000000;
BEGIN
    PERFORM snowflake_registry.check_argument('start', start BETWEEN 0 AND 9223372036854775806,
        'Pass the first number, from 0 to 9223372036854775806.');
    PERFORM snowflake_registry.check_argument('step', step BETWEEN 1 AND most,
        'Pass the smallest size of a block, from 1 to 1000000000.');
    PERFORM snowflake_registry.check_argument('max_step', max_step BETWEEN step AND most,
        'Pass the largest size of a block, from "step" to 1000000000.');
END
$$;
CREATE FUNCTION snowflake_registry.is_of_series(tag text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT starts_with(tag, 'series ') $$;
CREATE FUNCTION snowflake_registry.check_begins_at(tag text, begins_at timestamptz) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM snowflake_registry.check_argument('tag', snowflake_registry.is_of_series(tag),
        'Only a tag that begins with "series " has a period.');
    PERFORM snowflake_registry.check_argument('begins_at', begins_at >= '0001-01-01 00:00:00+00' AND begins_at < '10000-01-01 00:00:00+00',
        'Pass when the period of the series begins.');
END
$$;
CREATE FUNCTION snowflake_registry.begin_segment(
    fleet uuid, tag text, begins_at timestamptz, start bigint, step bigint, max_step bigint
) RETURNS snowflake_registry.block
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    f snowflake_registry.fleet;
    b snowflake_registry.block;
    margin constant interval := '10 minutes';
BEGIN
    PERFORM snowflake_registry.check_argument('fleet', begin_segment.fleet IS NOT NULL OR NULL,
        'Pass the fleet that hello() returned.');
    PERFORM snowflake_registry.check_tag(begin_segment.tag);
    PERFORM snowflake_registry.check_begins_at(begin_segment.tag, begin_segment.begins_at);
    PERFORM snowflake_registry.check_sizes(begin_segment.start, begin_segment.step, begin_segment.max_step);
    f := snowflake_registry.read_fleet();
    IF clock_timestamp() + margin >= begin_segment.begins_at THEN
        f := snowflake_registry.enter(begin_segment.fleet, true);
    END IF;
    b := snowflake_registry.block_answer(f, begin_segment.fleet, begin_segment.tag);
    IF b.answer IS NOT NULL THEN
        RETURN b;
    END IF;
    SELECT s.generation INTO b.generation FROM snowflake_registry.segment AS s WHERE s.tag = begin_segment.tag;
    IF FOUND THEN
        b.answer := 'current';
    ELSIF b.now + margin < begin_segment.begins_at THEN
        b.answer := 'refused';
        b.reason := 'not begun';
        b.until := begin_segment.begins_at;
    ELSIF f.floor > 0 AND begin_segment.begins_at - 2 * margin < snowflake_registry.time_of(f, f.floor) THEN
        b.answer := 'refused';
        b.reason := 'unknown tag';
    ELSE
        b.answer := 'created';
        b.generation := snowflake_registry.insert_segment(f, begin_segment.tag, begin_segment.start, begin_segment.step,
            begin_segment.max_step, coalesce((SELECT min(k.life) - 1 FROM snowflake_registry.skip AS k
                WHERE k.since >= begin_segment.begins_at - 2 * margin), f.life),
            b.now, begin_segment.begins_at, NULL);
    END IF;
    RETURN b;
END
$$;
CREATE FUNCTION snowflake_registry.create_segment(
    tag text, start bigint DEFAULT 1, step bigint DEFAULT 1000, max_step bigint DEFAULT NULL, description text DEFAULT NULL,
    begins_at timestamptz DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    f snowflake_registry.fleet;
BEGIN
    PERFORM snowflake_registry.check_tag(create_segment.tag);
    IF snowflake_registry.is_of_series(create_segment.tag) OR create_segment.begins_at IS NOT NULL THEN
        PERFORM snowflake_registry.check_begins_at(create_segment.tag, create_segment.begins_at);
        PERFORM snowflake_registry.check_argument('begins_at', create_segment.begins_at <= clock_timestamp() + interval '10 minutes',
            'Create the tag of a period when the period has begun. A tag that the registry loses before is created again by a server.');
    END IF;
    max_step := coalesce(create_segment.max_step, least(create_segment.step * 100, 1000000000));
    PERFORM snowflake_registry.check_sizes(create_segment.start, create_segment.step, create_segment.max_step);
    PERFORM snowflake_registry.check_argument('description', description IS NULL OR length(description) <= 1000,
        'Pass at most 1000 characters.');
    f := snowflake_registry.read_fleet();
    f := snowflake_registry.enter(f.fleet_id, true);
    IF EXISTS (SELECT FROM snowflake_registry.segment AS s WHERE s.tag = create_segment.tag) THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_object', MESSAGE = format('tag "%s" exists already', create_segment.tag),
            HINT = 'To see it, run "SELECT * FROM snowflake_registry.segments". To begin again with another number, drop it first.';
    END IF;
    RETURN snowflake_registry.insert_segment(f, create_segment.tag, create_segment.start, create_segment.step,
        create_segment.max_step, f.life, clock_timestamp(), create_segment.begins_at, create_segment.description);
END
$$;
CREATE FUNCTION snowflake_registry.remove_segment(tag text) RETURNS snowflake_registry.segment
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    f snowflake_registry.fleet := snowflake_registry.read_fleet();
    s snowflake_registry.segment;
BEGIN
    PERFORM snowflake_registry.check_tag(remove_segment.tag), snowflake_registry.enter(f.fleet_id, true);
    DELETE FROM snowflake_registry.segment AS t WHERE t.tag = remove_segment.tag RETURNING * INTO s;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('tag "%s" does not exist', remove_segment.tag),
            HINT = 'To see the tags, run "SELECT * FROM snowflake_registry.segments".';
    END IF;
    RETURN s;
END
$$;
CREATE FUNCTION snowflake_registry.recreate_segment(
    tag text, start bigint DEFAULT NULL, step bigint DEFAULT NULL, max_step bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    s snowflake_registry.segment := snowflake_registry.remove_segment(recreate_segment.tag);
    f snowflake_registry.fleet := snowflake_registry.read_fleet();
BEGIN
    start := coalesce(recreate_segment.start, least(s.next_value + snowflake_registry.pending_skip(s), 9223372036854775806)::bigint);
    s.step := coalesce(recreate_segment.step, least(s.step, recreate_segment.max_step));
    s.max_step := coalesce(recreate_segment.max_step, greatest(s.max_step, s.step));
    PERFORM snowflake_registry.check_sizes(recreate_segment.start, s.step, s.max_step);
    RETURN snowflake_registry.insert_segment(f, recreate_segment.tag, recreate_segment.start, s.step, s.max_step, f.life,
        clock_timestamp(), s.begins_at, s.description);
END
$$;
CREATE FUNCTION snowflake_registry.drop_segment(tag text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    s snowflake_registry.segment := snowflake_registry.remove_segment(drop_segment.tag);
BEGIN
    IF s.begins_at IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('tag "%s" belongs to a series', drop_segment.tag),
            DETAIL = 'A server creates it again when it needs a number of the period, and would issue the same numbers again.',
            HINT = 'Keep the tag, which occupies one row. To begin with another number, call snowflake_registry.recreate_segment().';
    END IF;
END
$$;
CREATE FUNCTION snowflake_registry.create_fleet(
    layout text, epoch timestamptz DEFAULT NULL, not_before timestamptz DEFAULT NULL
) RETURNS uuid
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    l snowflake_registry.layout := snowflake_registry.parse_layout(create_fleet.layout);
    ms bigint := snowflake_registry.epoch_ms(create_fleet.epoch);
    i snowflake_registry.identity := snowflake_registry.identity_now();
    f snowflake_registry.fleet;
BEGIN
    IF NOT isfinite(not_before) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'argument "not_before" must be finite',
            HINT = 'Pass the time before which no ID is to be granted, or NULL.';
    END IF;
    LOCK TABLE snowflake_registry.fleet IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO f FROM snowflake_registry.fleet;
    IF FOUND THEN
        IF (f.layout, f.epoch) IS DISTINCT FROM (l.layout, ms) THEN
            RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = 'the fleet exists with another layout or epoch',
                DETAIL = format('The layout is "%s", and the epoch is %s.', f.layout, snowflake_registry.time_of(f, 0)),
                HINT = 'To change them, stop the servers and run "SELECT snowflake_registry.change_layout(layout, epoch)".';
        END IF;
        RAISE NOTICE 'the fleet exists already';
        RETURN f.fleet_id;
    END IF;
    INSERT INTO snowflake_registry.fleet
    VALUES (true, gen_random_uuid(), l.layout, ms, l.timestamp_bits, l.datacenter_bits, l.worker_bits, l.low_bits, l.tick_us,
        1, clock_timestamp(), 'the fleet was created', i.system_identifier, i.timeline, i.database_oid, i.table_oid, 0, 0, 0, false,
        coalesce(snowflake_registry.point_of(not_before, ms, l.timestamp_bits, l.low_bits, l.tick_us), 0))
    RETURNING * INTO f;
    RETURN f.fleet_id;
END
$$;
CREATE FUNCTION snowflake_registry.change_layout(layout text, epoch timestamptz DEFAULT NULL) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    l snowflake_registry.layout := snowflake_registry.parse_layout(change_layout.layout);
    ms bigint := snowflake_registry.epoch_ms(change_layout.epoch);
    i snowflake_registry.identity := snowflake_registry.identity_now();
    f snowflake_registry.fleet;
    g snowflake_registry.fleet;
    n snowflake_registry.node;
    now_at timestamptz;
    top bigint;
    first_grant timestamptz;
BEGIN
    PERFORM snowflake_registry.read_fleet();
    PERFORM snowflake_registry.commit_durably();
    SELECT * INTO STRICT f FROM snowflake_registry.fleet FOR UPDATE;
    now_at := clock_timestamp();
    IF (f.layout, f.epoch) IS NOT DISTINCT FROM (l.layout, ms) THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'the fleet has this layout and this epoch already',
            HINT = 'Pass the new layout and the new epoch. Without an epoch, Twitter''s epoch is used.';
    END IF;
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.begin_life(f, i, false, now_at);
    END IF;
    SELECT greatest(max(t.bound), f.quarantine_until, f.floor) INTO top FROM snowflake_registry.node AS t;
    g := f;
    g.layout := l.layout;
    g.epoch := ms;
    g.timestamp_bits := l.timestamp_bits;
    g.datacenter_bits := l.datacenter_bits;
    g.worker_bits := l.worker_bits;
    g.low_bits := l.low_bits;
    g.tick_us := l.tick_us;
    g.floor := CASE WHEN top = 0 THEN 0 ELSE
        least((div(top::numeric, 2::numeric ^ l.low_bits) + 1) * 2::numeric ^ l.low_bits, 9223372036854775807)::bigint END;
    first_grant := snowflake_registry.time_of(g,
        CASE WHEN top = 0 THEN 0 ELSE snowflake_registry.sum_of(g.floor, snowflake_registry.margin(g)) END);
    IF g.floor > snowflake_registry.sum_of(snowflake_registry.point_of(g, now_at), snowflake_registry.far(g)) THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'the IDs of the new layout would be lower than the existing IDs',
            DETAIL = format('With the new layout and epoch, no server could issue IDs until %s.', first_grant),
            HINT = 'Choose an earlier epoch or more bits below the timestamp.';
    END IF;
    FOR n IN SELECT * FROM snowflake_registry.node LOOP
        PERFORM snowflake_registry.end_tenure(f, n, now_at, 'layout change');
    END LOOP;
    DELETE FROM snowflake_registry.node;
    DELETE FROM snowflake_registry.ring;
    UPDATE snowflake_registry.fleet SET
        layout = g.layout, epoch = g.epoch, timestamp_bits = g.timestamp_bits, datacenter_bits = g.datacenter_bits,
        worker_bits = g.worker_bits, low_bits = g.low_bits, tick_us = g.tick_us,
        life = f.life + 1, life_since = now_at, life_reason = format('the layout "%s" was changed', f.layout),
        floor = g.floor,
        quarantine_until = CASE WHEN f.quarantine_until = 0 THEN 0 ELSE
            snowflake_registry.point_of(g, snowflake_registry.time_of(f, f.quarantine_until)) END,
        quarantine_before = CASE WHEN f.quarantine_before = 0 THEN 0 ELSE
            snowflake_registry.point_of(g, snowflake_registry.time_of(f, f.quarantine_before)) END,
        newest_seen = CASE WHEN f.newest_seen = 0 THEN 0 ELSE
            snowflake_registry.point_of(g, snowflake_registry.time_of(f, f.newest_seen)) END;
    RETURN greatest(first_grant, now_at);
END
$$;
CREATE FUNCTION snowflake_registry.open() RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    i snowflake_registry.identity := snowflake_registry.identity_now();
    f snowflake_registry.fleet;
    now_at timestamptz;
BEGIN
    PERFORM snowflake_registry.read_fleet();
    SELECT * INTO STRICT f FROM snowflake_registry.fleet FOR UPDATE;
    now_at := clock_timestamp();
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.begin_life(f, i, false, now_at);
    END IF;
    IF NOT snowflake_registry.in_quarantine(f, snowflake_registry.point_of(f, now_at)) THEN
        RAISE NOTICE 'the fleet is not in quarantine';
        RETURN false;
    END IF;
    PERFORM snowflake_registry.commit_durably();
    UPDATE snowflake_registry.fleet SET quarantine_until = f.quarantine_before, spare_closed = false RETURNING * INTO STRICT f;
    UPDATE snowflake_registry.skip AS k SET windows = 0
    WHERE k.quarantine = (SELECT q.quarantine FROM snowflake_registry.skip AS q ORDER BY q.life DESC LIMIT 1);
    RAISE LOG 'the quarantine of fleet % was ended by "%"', f.fleet_id, session_user;
    RETURN NOT snowflake_registry.in_quarantine(f, snowflake_registry.point_of(f, now_at));
END
$$;
CREATE FUNCTION snowflake_registry.close() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    i snowflake_registry.identity := snowflake_registry.identity_now();
    f snowflake_registry.fleet;
BEGIN
    PERFORM snowflake_registry.read_fleet();
    PERFORM snowflake_registry.commit_durably();
    SELECT * INTO STRICT f FROM snowflake_registry.fleet FOR UPDATE;
    f := snowflake_registry.begin_life(f, i, true, clock_timestamp(), format('close() was called by "%s"', session_user));
    RETURN snowflake_registry.time_of(f, snowflake_registry.quarantine_end(f));
END
$$;
CREATE FUNCTION snowflake_registry.grant_server(role name) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF role IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'argument "role" must not be null',
            HINT = 'Pass the role as which the servers connect to the registry.';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = role) THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('role "%s" does not exist', role),
            HINT = 'Create the role first. The registry cannot be opened to PUBLIC.';
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA snowflake_registry TO %I', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_registry.hello, snowflake_registry.claim, snowflake_registry.renew, '
        'snowflake_registry.take, snowflake_registry.give_back, snowflake_registry.report, '
        'snowflake_registry.begin_segment TO %I', role);
END
$$;
CREATE VIEW snowflake_registry.status AS
SELECT
    f.fleet_id,
    f.layout,
    snowflake_registry.time_of(0, f.epoch, f.low_bits, f.tick_us) AS epoch,
    f.life,
    f.life_since,
    f.life_reason,
    q.until AS quarantine_until,
    CASE WHEN q.until IS NULL THEN NULL ELSE NOT f.spare_closed AND f.worker_bits >= 3 END AS spare_open,
    CASE WHEN f.floor > 0 THEN snowflake_registry.time_of(f.floor, f.epoch, f.low_bits, f.tick_us) END AS floor,
    (SELECT count(*) FROM snowflake_registry.node) AS worker_ids_used
FROM snowflake_registry.fleet AS f,
    LATERAL (SELECT clock_timestamp() AS now_at) AS c,
    LATERAL (
        SELECT CASE WHEN f.quarantine_until > 0 AND e.quarantine_end >= c.now_at THEN e.quarantine_end END AS until
        FROM (SELECT snowflake_registry.time_of(f.quarantine_until, f.epoch, f.low_bits, f.tick_us) + interval '10 minutes'
            AS quarantine_end) AS e
    ) AS q;
CREATE VIEW snowflake_registry.servers AS
SELECT
    n.datacenter_id,
    n.worker_id,
    CASE
        WHEN t.granted_until + interval '10 minutes' < c.now_at THEN 'gone'
        WHEN n.seen >= c.now_at - greatest(n.lease / 144, interval '10 seconds') THEN 'live'
        ELSE 'late'
    END AS state,
    n.about ->> 'host' AS host,
    snowflake_registry.about_number(n.about, 'port') AS port,
    n.about ->> 'data_directory' AS data_directory,
    n.about ->> 'system_identifier' AS system_identifier,
    n.about ->> 'role' AS role,
    n.about ->> 'server_version' AS server_version,
    n.about ->> 'extension_version' AS extension_version,
    n.since,
    n.seen,
    t.granted_until,
    n.lease,
    snowflake_registry.about_number(n.about, 'clock_offset_us') * interval '1 microsecond' AS clock_offset,
    snowflake_registry.about_number(n.about, 'round_trip_us') * interval '1 microsecond' AS round_trip,
    n.life,
    n.holder
FROM snowflake_registry.fleet AS f
    CROSS JOIN snowflake_registry.node AS n
    CROSS JOIN LATERAL (SELECT snowflake_registry.time_of(n.bound, f.epoch, f.low_bits, f.tick_us) AS granted_until) AS t
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now_at) AS c;
CREATE VIEW snowflake_registry.handovers AS
SELECT h.datacenter_id, h.worker_id, h.about ->> 'host' AS host, snowflake_registry.about_number(h.about, 'port') AS port,
    h.about ->> 'data_directory' AS data_directory, h.since, h.seen, h.granted_until, h.ended, h.ended_by, h.start AS first_id,
    h.bound AS last_id, h.life, h.holder
FROM snowflake_registry.history AS h
UNION ALL
SELECT s.datacenter_id, s.worker_id, s.host, s.port, s.data_directory, s.since, s.seen, s.granted_until, NULL, NULL, n.start,
    n.bound, n.life, n.holder
FROM snowflake_registry.servers AS s JOIN snowflake_registry.node AS n USING (datacenter_id, worker_id);
CREATE VIEW snowflake_registry.datacenters AS
SELECT r.datacenter_id, w.worker_ids, u.used, w.worker_ids - u.used AS free
FROM snowflake_registry.fleet AS f
    CROSS JOIN snowflake_registry.ring AS r
    CROSS JOIN LATERAL (SELECT (1::bigint << f.worker_bits) - (1::bigint << f.worker_bits) / 8 AS worker_ids) AS w
    CROSS JOIN LATERAL (
        SELECT count(*) AS used FROM snowflake_registry.servers AS s
        WHERE s.datacenter_id = r.datacenter_id AND s.worker_id < w.worker_ids AND s.state <> 'gone'
    ) AS u;
CREATE VIEW snowflake_registry.segments AS
SELECT s.tag, s.generation, s.next_value, least(p.skip, 9223372036854775807 - s.next_value)::bigint AS skip, s.step, s.max_step,
    s.updated_at, s.begins_at, s.description
FROM snowflake_registry.segment AS s
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(k.windows), 0) * 64 * s.max_step AS skip FROM snowflake_registry.skip AS k WHERE k.life > s.life
    ) AS p;
CREATE VIEW snowflake_registry.holes AS
SELECT h.tag, h.generation, h.first, h.last, h.life, h.skipped_at FROM snowflake_registry.hole AS h;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_registry FROM PUBLIC;
GRANT USAGE ON SCHEMA snowflake_registry TO pg_monitor;
GRANT SELECT ON snowflake_registry.status, snowflake_registry.servers, snowflake_registry.handovers,
    snowflake_registry.datacenters, snowflake_registry.segments, snowflake_registry.holes TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_registry.time_of(bigint, bigint, integer, bigint),
    snowflake_registry.about_number(jsonb, text) TO pg_monitor;
