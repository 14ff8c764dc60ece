-- The life of the registry: detects that the registry was restored, rewound, copied or failed over, and begins a new life with a
-- quarantine of what lost changes may have granted. claim.sql determines when the worker ID of a lost server is free.

-- Identifies the server and the tables of the registry. Restoring a dump into the same cluster changes neither the system
-- identifier nor the timeline, but it changes the OIDs.
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

-- Returns true if these are the recorded tables and their rows were not restored from a dump.
CREATE FUNCTION snowflake_registry.same_tables(f snowflake_registry.fleet, i snowflake_registry.identity) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT f.mark IS NOT NULL AND (f.database_oid, f.table_oid) IS NOT DISTINCT FROM (i.database_oid, i.table_oid) $$;

CREATE FUNCTION snowflake_registry.moved(f snowflake_registry.fleet, i snowflake_registry.identity) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT (f.system_identifier, f.timeline) IS DISTINCT FROM (i.system_identifier, i.timeline)
        OR NOT snowflake_registry.same_tables(f, i)
$$;

-- The row of the fleet contains the number of the transaction that wrote it. PostgreSQL stores the same number in "xmin". If the
-- row was deleted or truncated and then copied back, the two numbers differ, and this function sets the row's mark to NULL. A copy
-- of the data files, VACUUM FULL and CLUSTER preserve both numbers.
CREATE FUNCTION snowflake_registry.as_written(f snowflake_registry.fleet, written xid) RETURNS snowflake_registry.fleet
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF f.mark IS DISTINCT FROM written THEN
        f.mark := NULL;
    END IF;
    RETURN f;
END
$$;

-- Every function that updates the row of the fleet must call this function afterwards, in the same transaction or subtransaction.
CREATE FUNCTION snowflake_registry.mark_fleet() RETURNS snowflake_registry.fleet
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$ UPDATE snowflake_registry.fleet AS t SET mark = t.xmin RETURNING t.* $$;

CREATE FUNCTION snowflake_registry.read_fleet() RETURNS snowflake_registry.fleet
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    row record;
BEGIN
    SELECT t AS f, t.xmin AS written INTO row FROM snowflake_registry.fleet AS t;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = 'the registry has no fleet',
            HINT = 'As the owner of the registry, run "SELECT snowflake_registry.create_fleet(layout)" with the layout of the servers.';
    END IF;
    RETURN snowflake_registry.as_written(row.f, row.written);
END
$$;

CREATE FUNCTION snowflake_registry.quarantine_end(f snowflake_registry.fleet) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.sum_of(f.quarantine_until, snowflake_registry.margin(f)) $$;

-- Returns true if a point lies within the last quarantine, which includes one margin after its end.
CREATE FUNCTION snowflake_registry.in_quarantine(f snowflake_registry.fleet, point bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT f.quarantine_until > 0 AND point <= snowflake_registry.quarantine_end(f) $$;

-- The end of the quarantine of the spare worker IDs, including one margin.
CREATE FUNCTION snowflake_registry.spare_quarantine_end(f snowflake_registry.fleet) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.sum_of(f.spare_until, snowflake_registry.margin(f)) $$;

-- The number of windows whose numbers may have been taken from a tag and lost. "since" is the time that has passed since the newest
-- time in the registry. At most "steps" - 1 lives can have been lost.
CREATE FUNCTION snowflake_registry.lost_windows(since interval, steps bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT least((2 * steps - 1)
        * (floor(greatest(extract(epoch FROM since), 0) / 600) + 3 + steps), 9223372036854775807)::bigint
$$;

-- Returns a recorded time, or the latest time that it can mean if it is in the future. Such a time is from a clock that was ahead.
-- The registry grants nothing while its clock is more than one lease and one margin ahead of the servers.
CREATE FUNCTION snowflake_registry.latest_of(recorded timestamptz, now_at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN recorded > now_at + interval '10 minutes' THEN now_at - interval '24 hours 20 minutes' ELSE recorded END
$$;

-- Begins a new life. The caller holds the lock FOR UPDATE on the row of the fleet. If a renewal was more recent than the registry,
-- "told" is the life in that renewal. "told" is 0 if the owner begins the life, and NULL if the registry has moved to a different
-- place. The rows in "node" do not change, because the quarantine covers every grant that may have been lost. The rows in "segment"
-- do not change, because a row in "skip" records how many numbers each tag skips.
-- crates/flake/src/fleet/registry_model/quarantine.rs explains why each rule is needed.
CREATE FUNCTION snowflake_registry.begin_life(
    f snowflake_registry.fleet, i snowflake_registry.identity, told bigint, now_at timestamptz, why text DEFAULT NULL
) RETURNS snowflake_registry.fleet
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    now_point bigint := snowflake_registry.point_of(f, now_at);
    quarantined boolean := snowflake_registry.in_quarantine(f, now_point);
    same_system boolean := f.system_identifier = i.system_identifier;
    timelines bigint := CASE WHEN same_system THEN greatest(i.timeline - f.timeline, 0) ELSE 0 END;
    -- Whether the timelines show how much may have been lost.
    followed boolean := timelines > 0 AND told IS NULL AND snowflake_registry.same_tables(f, i);
    newest bigint;
    newest_at timestamptz;
    stale boolean;
    calm boolean;
    late boolean;
    steps bigint;
    windows bigint;
    reason text;
BEGIN
    SELECT max(snowflake_registry.latest_of(n.seen, now_at)) INTO newest_at FROM snowflake_registry.node AS n;
    newest := coalesce(snowflake_registry.point_of(f, newest_at), 0);
    newest_at := greatest(newest_at, snowflake_registry.latest_of(f.life_since, now_at));
    -- The lost answers came from a clock that can be one margin behind the newest time in the rows. The lost grants may therefore
    -- have been made during a quarantine up to one margin after its end.
    stale := f.quarantine_until > 0 AND snowflake_registry.two_margins_above(f, f.quarantine_until) >= newest;
    calm := f.spare_until = 0 OR snowflake_registry.two_margins_above(f, f.spare_until) < newest;
    -- On the old timeline, a renewal may have begun a life that was then lost. After that life's spare quarantine, common spare
    -- worker IDs may have been granted. Even if clocks differ by one margin, this cannot happen sooner.
    late := snowflake_registry.sum_of(newest, snowflake_registry.near(f))
        < snowflake_registry.sum_of(now_point, snowflake_registry.margin(f));
    -- A renewal shows only the minimum number of lost lives. A later renewal that proves the loss of more lives begins a new life.
    steps := CASE WHEN followed THEN timelines WHEN told > 0 THEN least(greatest(told - f.life, 0) + 1, 8) ELSE 8 END;
    windows := snowflake_registry.lost_windows(now_at - newest_at, steps);
    reason := CASE
        WHEN why IS NOT NULL THEN why
        WHEN NOT same_system OR (f.database_oid, f.table_oid) IS DISTINCT FROM (i.database_oid, i.table_oid)
            THEN 'the registry is in a different cluster or database than before'
        WHEN f.mark IS NULL THEN 'the rows of the registry were restored'
        WHEN i.timeline <> f.timeline THEN format('timeline %s follows timeline %s', i.timeline, f.timeline)
        ELSE 'a server knew of renewals that the registry has lost'
    END;
    UPDATE snowflake_registry.fleet AS u SET
        -- Each lost timeline has also used a life. If that number were reused, renewals of the lost life would look like renewals
        -- of this one.
        life = f.life + greatest(timelines, 1),
        life_since = now_at,
        life_reason = reason,
        system_identifier = i.system_identifier,
        timeline = i.timeline,
        database_oid = i.database_oid,
        table_oid = i.table_oid,
        quarantine_before = CASE WHEN quarantined THEN f.quarantine_before ELSE f.quarantine_until END,
        quarantine_until = greatest(f.quarantine_until, snowflake_registry.sum_of(now_point, snowflake_registry.far(f))),
        spare_before = CASE WHEN calm THEN f.spare_until ELSE f.spare_before END,
        -- In version 0.2.0-dev, all worker IDs had leases of any length. Rows from a dump of that version contain the highest
        -- point.
        spare_until = CASE WHEN f.spare_until = 9223372036854775807
            THEN snowflake_registry.sum_of(now_point, snowflake_registry.far(f))
            ELSE greatest(f.spare_until, snowflake_registry.sum_of(now_point, snowflake_registry.near(f))) END,
        newest_seen = CASE WHEN calm THEN newest ELSE f.newest_seen END,
        settled = CASE WHEN NOT followed THEN NULL WHEN calm THEN f.timeline ELSE f.settled END,
        -- A life that begins within a quarantine is also stale.
        spare_closed = NOT followed OR timelines > 1 OR stale OR late;
    f := snowflake_registry.mark_fleet();
    INSERT INTO snowflake_registry.skip AS k (life, quarantine, since, lost, windows)
    VALUES (f.life,
        coalesce((SELECT q.quarantine FROM snowflake_registry.skip AS q WHERE quarantined ORDER BY q.life DESC LIMIT 1), f.life),
        now_at, windows, windows)
    ON CONFLICT ON CONSTRAINT skip_pkey DO UPDATE
        SET quarantine = excluded.quarantine, since = excluded.since, lost = excluded.lost, windows = excluded.windows;
    RAISE LOG USING MESSAGE = format('life %s of fleet %s begins: %s', f.life, f.fleet_id, reason),
        DETAIL = format('The quarantine ends at %s, and the quarantine of the spare worker IDs at %s.',
            snowflake_registry.time_of(f, snowflake_registry.quarantine_end(f)),
            snowflake_registry.time_of(f, snowflake_registry.spare_quarantine_end(f)));
    RETURN f;
END
$$;
