-- Locks the row of the fleet for a server's transaction, terminates sessions that keep it locked, and commits durably. schema.sql
-- documents the order of the locks.

-- An answer must survive a crash and a failover, or the caller must receive a warning that it might not. This function does not
-- change "remote_apply", which is stronger than "on". The settings apply until the end of the transaction, not only until the end
-- of the function.
CREATE FUNCTION snowflake_registry.commit_durably() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    -- If a user cancels the wait for the standby, COMMIT succeeds with a warning. The caller must receive this warning, because the
    -- standby may not have the change.
    IF current_setting('client_min_messages') = 'error' THEN
        PERFORM set_config('client_min_messages', 'warning', true);
    END IF;
END
$$;

-- Returns the sessions whose transactions hold locks on rows of the registry and have lasted at least this long. The result
-- excludes sessions of superusers and of the registry's owner, sessions that wait for one of the other sessions, and sessions that
-- have committed and are waiting for a standby.
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

-- Terminates each of the given sessions that is still in the same transaction. The owner of the registry can terminate only
-- sessions of roles whose privileges it has.
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
        RAISE LOG USING MESSAGE = format('terminating the session of role "%s" with process ID %s, because it keeps the registry locked',
                held.usename, held.pid),
            DETAIL = format('Its transaction began at %s.', held.xact_start);
    END LOOP;
END
$$;

-- Waits until no other session has locked the row of the fleet. PostgreSQL keeps a queue for the lock of a table, so sessions that
-- request the row later wait behind this session. Without the queue, sessions that lock the row FOR SHARE would overtake this
-- session, which could then wait forever. The setting "lock_timeout" would not end this wait, because it limits only the wait for
-- each single session.
CREATE FUNCTION snowflake_registry.queue_for_fleet() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    LOCK TABLE snowflake_registry.fleet IN EXCLUSIVE MODE;
END
$$;

-- Prepares a server's transaction and locks the row of the fleet.
CREATE FUNCTION snowflake_registry.lock_fleet(exclusive boolean) RETURNS snowflake_registry.fleet
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    row record;
    holders text[];
BEGIN
    PERFORM snowflake_registry.commit_durably();
    -- A caller that leaves its transaction open keeps the lock, and all other servers wait.
    IF current_setting('idle_in_transaction_session_timeout')::interval NOT BETWEEN interval '1 ms' AND interval '10 s' THEN
        PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        BEGIN
            IF exclusive THEN
                PERFORM snowflake_registry.queue_for_fleet();
                SELECT t AS f, t.xmin AS written INTO STRICT row FROM snowflake_registry.fleet AS t FOR UPDATE;
            ELSE
                SELECT t AS f, t.xmin AS written INTO STRICT row FROM snowflake_registry.fleet AS t FOR SHARE;
            END IF;
            RETURN snowflake_registry.as_written(row.f, row.written);
        EXCEPTION WHEN lock_not_available THEN
            -- A caller can turn the timeout off, or run a statement that does not end. A session that holds the lock for the entire
            -- wait is therefore terminated. The clock is not used to measure this time, because it may be set forward during the
            -- wait.
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
