-- What the registry knows about the server it is on. The OIDs reveal a dump that is restored into the same cluster, because it
-- changes neither the system identifier nor the timeline.
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

-- An answer must survive a crash and a failover, or its caller must see that it might not. "remote_apply" is stronger than "on" and stays.
-- The values last until the end of the transaction, not only until the end of the function.
CREATE FUNCTION snowflake_registry.commit_durably() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    -- A COMMIT whose wait for the standby was cancelled succeeds with a warning, which the caller must see.
    IF current_setting('client_min_messages') = 'error' THEN
        PERFORM set_config('client_min_messages', 'warning', true);
    END IF;
END
$$;

-- The sessions whose transactions have locked rows of the registry and began at least this long ago. Left out are those that wait for
-- one of the others, or for a standby after they have committed, and those of superusers and of the owner of the registry.
CREATE FUNCTION snowflake_registry.lock_holders(age interval) RETURNS text[]
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    WITH held AS (
        SELECT DISTINCT l.pid FROM pg_locks AS l
        WHERE l.locktype = 'relation' AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
            AND l.mode IN ('RowShareLock', 'RowExclusiveLock') AND l.granted AND l.pid <> pg_backend_pid()
            AND l.relation IN ('snowflake_registry.fleet'::regclass, 'snowflake_registry.node'::regclass,
                'snowflake_registry.segment'::regclass)
    )
    SELECT array_agg(format('%s %s', a.pid, a.xact_start))
    FROM held JOIN pg_stat_activity AS a USING (pid) JOIN pg_roles AS r ON r.oid = a.usesysid
    WHERE a.xact_start <= clock_timestamp() - lock_holders.age AND a.wait_event IS DISTINCT FROM 'SyncRep'
        AND NOT r.rolsuper AND r.rolname <> current_user
        AND NOT pg_blocking_pids(a.pid) && ARRAY(SELECT held.pid FROM held)
$$;

-- Ends those of the given sessions that are still in the same transaction. The owner of the registry can end only sessions of roles whose
-- rights it has.
CREATE FUNCTION snowflake_registry.end_sessions(sessions text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    held record;
BEGIN
    FOR held IN
        SELECT a.pid, a.usename, a.xact_start FROM pg_stat_activity AS a
        WHERE format('%s %s', a.pid, a.xact_start) = ANY (sessions) AND pg_has_role(a.usesysid, 'USAGE')
    LOOP
        PERFORM pg_terminate_backend(held.pid);
        RAISE LOG USING MESSAGE = format('the session of role "%s" with process ID %s is ended, because it keeps the registry locked',
                held.usename, held.pid),
            DETAIL = format('Its transaction began at %s.', held.xact_start);
    END LOOP;
END
$$;

-- Prepares the transaction of a server, and locks the row of the fleet.
CREATE FUNCTION snowflake_registry.lock_fleet(exclusive boolean) RETURNS snowflake_registry.fleet
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    f snowflake_registry.fleet;
    holders text[];
BEGIN
    PERFORM snowflake_registry.commit_durably();
    -- A caller that leaves its transaction open keeps the lock, and all other servers wait.
    IF current_setting('idle_in_transaction_session_timeout')::interval NOT BETWEEN interval '1 ms' AND interval '10 s' THEN
        PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    END IF;
    IF exclusive THEN
        SELECT * INTO f FROM snowflake_registry.fleet FOR UPDATE SKIP LOCKED;
    ELSE
        SELECT * INTO f FROM snowflake_registry.fleet FOR SHARE SKIP LOCKED;
    END IF;
    IF FOUND THEN
        RETURN f;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        BEGIN
            IF exclusive THEN
                SELECT * INTO STRICT f FROM snowflake_registry.fleet FOR UPDATE;
            ELSE
                SELECT * INTO STRICT f FROM snowflake_registry.fleet FOR SHARE;
            END IF;
            RETURN f;
        EXCEPTION WHEN lock_not_available THEN
            -- A caller can switch the timeout off again, or run a statement that does not end. A session that keeps the lock for as long as
            -- this one waits is ended. The clock is not read for this, because it may be set forward meanwhile.
            IF attempt = 2 THEN
                PERFORM snowflake_registry.end_sessions(holders);
                RAISE;
            END IF;
            holders := snowflake_registry.lock_holders('0');
            PERFORM set_config('lock_timeout', '3s', true);
        END;
    END LOOP;
END
$$;

CREATE FUNCTION snowflake_registry.quarantine_end(f snowflake_registry.fleet) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.sum_of(f.quarantine_until, snowflake_registry.margin(f)) $$;

-- Whether a point lies within the last quarantine, which includes one margin after its end.
CREATE FUNCTION snowflake_registry.in_quarantine(f snowflake_registry.fleet, point bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT f.quarantine_until > 0 AND point <= snowflake_registry.quarantine_end(f) $$;

-- How many windows of numbers can have been taken from a tag and lost. "since" is the time from the newest time that the registry
-- knows to now, and at most "steps" - 1 lives can have been lost.
CREATE FUNCTION snowflake_registry.lost_windows(since interval, steps bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT least((2 * steps - 1)
        * (floor(greatest(extract(epoch FROM since), 0) / 600) + 3 + steps), 9223372036854775807)::bigint
$$;

-- Begins a new life. The caller holds the lock FOR UPDATE on the row of the fleet. "told" means that a renewal or the owner knew more
-- than the registry. No row in "node" is changed: the quarantine covers everything that can have been granted and lost. No row in
-- "segment" is changed: a row in "skip" says how far each tag goes on above its next number.
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
    -- Only the timeline shows how many lives can have been lost.
    steps := CASE WHEN same_server AND NOT told AND i.timeline > f.timeline THEN i.timeline - f.timeline ELSE 8 END;
    windows := snowflake_registry.lost_windows(now_at - newest_at, steps);
    quarantined := snowflake_registry.in_quarantine(f, now_point);
    -- Without a request after the previous quarantine, the state can be from within it, and spare worker IDs were granted then.
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
