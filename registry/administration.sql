-- Functions for the owner of the registry: the fleet, its lease and its life. Those for tags, for reserved worker IDs and for privileges
-- are in tags.sql, reserved.sql and rights.sql. The owner does not free the worker ID of a lost server: claim.sql reuses it.

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
                MESSAGE = 'the fleet already exists with a different layout or epoch',
                DETAIL = format('The layout is "%s", and the epoch is %s.', f.layout, snowflake_registry.time_of(f, 0)),
                HINT = 'To change them, stop the servers and run "SELECT snowflake_registry.change_layout(layout, epoch)".';
        END IF;
        RAISE NOTICE 'the fleet already exists';
        RETURN f.fleet_id;
    END IF;
    INSERT INTO snowflake_registry.fleet (
        fleet_id, layout, epoch, timestamp_bits, datacenter_bits, worker_bits, low_bits, tick_us,
        life, life_since, life_reason,
        system_identifier, timeline, database_oid, table_oid,
        quarantine_until, quarantine_before, newest_seen, spare_closed,
        floor, spare_until
    ) VALUES (
        gen_random_uuid(), l.layout, ms, l.timestamp_bits, l.datacenter_bits, l.worker_bits, l.low_bits, l.tick_us,
        1, clock_timestamp(), 'the fleet was created',
        i.system_identifier, i.timeline, i.database_oid, i.table_oid,
        0, 0, 0, false,
        coalesce(snowflake_registry.point_of(not_before, ms, l.timestamp_bits, l.low_bits, l.tick_us), 0), 0
    );
    f := snowflake_registry.mark_fleet();
    RETURN f.fleet_id;
END
$$;

-- Returns the row of the fleet, locked for a function that the owner calls. Unlike lock_fleet(), this function does not terminate
-- sessions to get the lock.
CREATE FUNCTION snowflake_registry.lock_for_owner() RETURNS snowflake_registry.fleet
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    row record;
BEGIN
    PERFORM snowflake_registry.queue_for_fleet();
    SELECT t AS f, t.xmin AS written INTO STRICT row FROM snowflake_registry.fleet AS t FOR UPDATE;
    RETURN snowflake_registry.as_written(row.f, row.written);
END
$$;

-- Converts a point in the old layout to the point in the new layout that represents the same time. Point 0 represents no time and
-- remains 0.
CREATE FUNCTION snowflake_registry.convert_point(
    old_fleet snowflake_registry.fleet, new_fleet snowflake_registry.fleet, point bigint
) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN point = 0 THEN 0 ELSE snowflake_registry.point_of(new_fleet, snowflake_registry.time_of(old_fleet, point)) END
$$;

CREATE FUNCTION snowflake_registry.change_layout(layout text, epoch timestamptz DEFAULT NULL) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    l snowflake_registry.layout := snowflake_registry.parse_layout(change_layout.layout);
    ms bigint := snowflake_registry.epoch_ms(change_layout.epoch);
    i snowflake_registry.identity := snowflake_registry.identity_now();
    f snowflake_registry.fleet;
    -- The fleet in the new layout.
    g snowflake_registry.fleet;
    n snowflake_registry.node;
    now_at timestamptz;
    top bigint;
    first_grant timestamptz;
BEGIN
    PERFORM snowflake_registry.read_fleet();
    PERFORM snowflake_registry.commit_durably();
    f := snowflake_registry.lock_for_owner();
    now_at := clock_timestamp();
    IF (f.layout, f.epoch) IS NOT DISTINCT FROM (l.layout, ms) THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'the fleet already has this layout and epoch',
            HINT = 'Pass the new layout and the new epoch. If no epoch is passed, Twitter''s epoch is used.';
    END IF;
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.begin_life(f, i, NULL, now_at);
    END IF;
    IF EXISTS (SELECT FROM snowflake_registry.node AS t WHERE t.bound = 9223372036854775807) THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'worker IDs are reserved',
            DETAIL = 'The registry does not know which IDs the databases with these worker IDs have issued.',
            HINT = 'Stop these databases, and run "SELECT snowflake_registry.release(worker_id, datacenter_id)" for each worker ID that '
                'view "snowflake_registry.servers" shows as "reserved".';
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
    -- The first tick of the new layout whose IDs are all higher than the old IDs.
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
    -- Bounds of the old layout have no meaning in the new layout. The floor replaces them all.
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
        quarantine_until = snowflake_registry.convert_point(f, g, f.quarantine_until),
        quarantine_before = snowflake_registry.convert_point(f, g, f.quarantine_before),
        spare_until = snowflake_registry.convert_point(f, g, f.spare_until),
        spare_before = snowflake_registry.convert_point(f, g, f.spare_before),
        newest_seen = snowflake_registry.convert_point(f, g, f.newest_seen);
    PERFORM snowflake_registry.mark_fleet();
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
    f := snowflake_registry.lock_for_owner();
    now_at := clock_timestamp();
    -- If the registry was restored and no server has noticed this yet, begin the new life now. Otherwise, the next request would
    -- begin a quarantine.
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.begin_life(f, i, NULL, now_at);
    END IF;
    IF NOT snowflake_registry.in_quarantine(f, snowflake_registry.point_of(f, now_at)) THEN
        RAISE NOTICE 'the fleet is not in quarantine';
        RETURN false;
    END IF;
    PERFORM snowflake_registry.commit_durably();
    UPDATE snowflake_registry.fleet SET quarantine_until = f.quarantine_before, spare_closed = false;
    f := snowflake_registry.mark_fleet();
    -- A tag does not skip numbers if no block has been taken from it since the quarantine began.
    UPDATE snowflake_registry.skip AS k SET windows = 0
    WHERE k.quarantine = (SELECT q.quarantine FROM snowflake_registry.skip AS q ORDER BY q.life DESC LIMIT 1);
    RAISE LOG 'the quarantine of fleet % was ended by "%"', f.fleet_id, session_user;
    -- The clock may have been set back to a time within the previous quarantine.
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
    f := snowflake_registry.lock_for_owner();
    f := snowflake_registry.begin_life(f, i, 0, clock_timestamp(), format('close() was called by "%s"', session_user));
    RETURN snowflake_registry.time_of(f, snowflake_registry.quarantine_end(f));
END
$$;
