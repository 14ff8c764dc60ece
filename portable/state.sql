-- The state from which IDs are issued, and the only function that advances it to a later tick.
--
-- The value of sequence "snowflake_portable_state" is tick << bits | counter. Counter n + 1 represents the ID with sequence number
-- n, and counter 0 means that no ID of the tick has been issued. A session checks the counter and calls nextval() in the same
-- expression, and does not draw from a tick whose IDs are used up. A tick therefore yields all of its IDs, plus at most one
-- discarded value for each session that checked the counter before the IDs were used up. PostgreSQL supports at most 2^18 sessions,
-- and "bits" leaves room for four times as many values, so draws never carry into the next tick. Only snowflake_portable_push()
-- changes the tick, and a lock ensures that only one session does so at a time. The tick that this function has read is still
-- current when it writes, so it never lowers the state, even if the clock is set back in the meantime.
--
-- The state is unlogged: after a crash, a promotion or a restore from a physical backup, it has no value. Sequence
-- "snowflake_portable_mark" is logged and contains the first tick that no ID has. Before the first ID of a window is issued, the
-- mark is raised by that window and flushed. A state without a value starts at the mark. A session cannot determine which changes
-- have been flushed, so the unlogged sequence "snowflake_portable_flushed" contains the tick below which the mark is known to be
-- flushed. It also has no value after a crash.
--
-- No session waits for another transaction to end, because the lock is taken in a subtransaction that is always rolled back. The
-- effect of setval() remains, because sequences are not transactional.

DO $state$
DECLARE
    format constant snowflake_portable_format := snowflake_portable_own();
    object text;
    grantee oid;
BEGIN
    EXECUTE pg_catalog.format(
        'CREATE OR REPLACE FUNCTION snowflake_portable_bits() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN %s',
        greatest(length(ltrim(format.sequence_max::bit(64)::text, '0')), 18) + 2);
    IF to_regclass(quote_ident(current_schema()) || '.snowflake_portable_configuration') IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE UNLOGGED SEQUENCE snowflake_portable_state AS bigint MINVALUE 0 START 0;
    CREATE UNLOGGED SEQUENCE snowflake_portable_flushed AS bigint MINVALUE 0 START 0;
    CREATE SEQUENCE snowflake_portable_mark AS bigint MINVALUE 0 START 0;
    -- This table is only locked and never contains rows.
    CREATE TABLE snowflake_portable_lock ();
    -- The values that snowflake_configure() has recorded. The table contains at most one row.
    CREATE TABLE snowflake_portable_configuration (
        worker_id integer NOT NULL,
        datacenter_id integer NOT NULL,
        database text NOT NULL,
        layout text NOT NULL,
        epoch_ms bigint NOT NULL
    );
    CREATE UNIQUE INDEX snowflake_portable_configuration_key ON snowflake_portable_configuration ((true));
    -- Default privileges may have granted access to other roles.
    FOREACH object IN ARRAY ARRAY['state', 'flushed', 'mark', 'lock', 'configuration'] LOOP
        FOR grantee IN
            SELECT DISTINCT privilege.grantee
            FROM pg_catalog.pg_class, aclexplode(relacl) AS privilege
            WHERE pg_class.oid = ('snowflake_portable_' || object)::regclass AND privilege.grantee <> relowner
        LOOP
            EXECUTE pg_catalog.format('REVOKE ALL ON %s FROM %s', 'snowflake_portable_' || object,
                CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END);
        END LOOP;
    END LOOP;
END
$state$;

-- The current tick according to the clock.
CREATE OR REPLACE FUNCTION snowflake_portable_now()
    RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN floor((date_part('epoch', clock_timestamp()) * 1000 - (snowflake_portable_own()).epoch_ms)
        / (snowflake_portable_own()).tick_ms)::bigint;

-- Flushes all existing WAL. Before version 17, PostgreSQL has no function that does this. On these versions, this function
-- truncates a table in the transaction that creates it, because PostgreSQL flushes WAL before it shortens the files of a table with
-- a free space map. Where this has no effect, for example with "wal_level" set to minimal, the function fills pages, which the WAL
-- writer flushes. A server that does not report WAL positions, such as Amazon Aurora with its default parameters, cannot prove that
-- the mark has been flushed. It issues no IDs, because a crash might repeat them.
CREATE OR REPLACE FUNCTION snowflake_portable_flush()
    RETURNS void LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
    written pg_lsn;
BEGIN
    BEGIN
        IF current_setting('server_version_num')::integer >= 170000 THEN
            EXECUTE 'SELECT pg_logical_emit_message(false, ''snowflake_portable'', '''', true)';
            RETURN;
        END IF;
        written := pg_current_wal_insert_lsn();
        PERFORM pg_current_wal_flush_lsn();
    EXCEPTION WHEN object_not_in_prerequisite_state OR feature_not_supported OR undefined_function OR insufficient_privilege THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'cannot flush the mark',
            DETAIL = pg_catalog.format('The server responded: %s.', SQLERRM),
            HINT = 'No IDs are issued, because the same IDs might be issued again after a crash. If the server is Amazon Aurora, set '
                '"rds.logical_replication" to 1 and restart the server.';
    END;
    BEGIN
        CREATE TABLE snowflake_portable_truncated AS SELECT repeat('-', 1000) AS filler FROM generate_series(1, 20);
        TRUNCATE snowflake_portable_truncated;
        RAISE EXCEPTION SQLSTATE 'SF000';
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
    IF pg_current_wal_flush_lsn() < written THEN
        PERFORM pg_logical_emit_message(false, 'snowflake_portable', repeat('-', 20000));
        -- pg_sleep() is not used, because it would take longer if the clock were set back.
        WHILE pg_current_wal_flush_lsn() < written LOOP
            NULL;
        END LOOP;
    END IF;
END
$$;

-- Advances the state to the clock's current tick, or to a later tick if all IDs of that tick are used up. Returns the new tick.
-- Returns NULL if the state does not need to advance, or if "waits" is false and another session holds the lock. The new tick is at
-- least "lowest". The first "taken" IDs of the new tick belong to the caller. If the state is far ahead of the clock, a session can
-- advance it only if it has waited since it found tick "seen" used up. This keeps the lead from growing.
CREATE OR REPLACE FUNCTION snowflake_portable_push(waits boolean, seen bigint, lowest bigint DEFAULT 0, taken bigint DEFAULT 0)
    RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
    format constant snowflake_portable_format := snowflake_portable_own();
    bits constant integer := snowflake_portable_bits();
    -- IDs can be 100 ms ahead of the clock before sessions have to wait. A window is 4 s long.
    ahead constant bigint := greatest(100 / format.tick_ms, 1);
    reserved constant bigint := greatest(4000 / format.tick_ms, 2);
    state bigint;
    now bigint;
    tick bigint;
    moved bigint;
BEGIN
    BEGIN
        IF waits THEN
            LOCK TABLE snowflake_portable_lock IN SHARE ROW EXCLUSIVE MODE;
        ELSE
            LOCK TABLE snowflake_portable_lock IN SHARE ROW EXCLUSIVE MODE NOWAIT;
        END IF;
        state := pg_sequence_last_value('snowflake_portable_state');
        now := snowflake_portable_now();
        IF state IS NULL THEN
            tick := greatest(now, lowest, coalesce(pg_sequence_last_value('snowflake_portable_mark'), 0));
        ELSE
            tick := state >> bits;
            IF taken > 0 OR state & ((1::bigint << bits) - 1) > format.sequence_max THEN
                tick := tick + 1;
            END IF;
            tick := greatest(now, lowest, tick);
        END IF;
        IF tick IS DISTINCT FROM state >> bits AND (tick <= now + ahead OR state IS NULL OR seen IS NULL OR seen = state >> bits) THEN
            IF tick < 1 THEN
                RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                    MESSAGE = 'the clock is before the epoch',
                    DETAIL = pg_catalog.format('The epoch is %s.', snowflake_portable_utc(format.epoch AT TIME ZONE 'UTC')),
                    HINT = 'Correct the server''s clock.';
            ELSIF tick > snowflake_portable_last_tick(format) THEN
                RAISE EXCEPTION USING ERRCODE = 'sequence_generator_limit_exceeded',
                    MESSAGE = pg_catalog.format('the timestamps of layout "%s" are exhausted', format.layout),
                    DETAIL = pg_catalog.format('The last tick of this layout ends at %s.',
                        snowflake_portable_utc(snowflake_portable_end(format))),
                    HINT = 'Check the server''s clock. If the clock is correct, no more IDs can be issued with this layout. IDs issued '
                        'with a different layout or epoch might duplicate existing IDs.';
            END IF;
            IF state IS NULL THEN
                -- Store a tick that is used up. Otherwise, each session that is cancelled during the flush would raise the mark by
                -- another window.
                PERFORM setval('snowflake_portable_state', (tick - 1) << bits | (format.sequence_max + 2));
            END IF;
            IF tick >= coalesce(pg_sequence_last_value('snowflake_portable_flushed'), 0) THEN
                PERFORM setval('snowflake_portable_mark',
                    greatest(tick + reserved, pg_sequence_last_value('snowflake_portable_mark')));
                PERFORM snowflake_portable_flush();
                PERFORM setval('snowflake_portable_flushed', tick + reserved);
            END IF;
            PERFORM setval('snowflake_portable_state', tick << bits | taken);
            moved := tick;
        END IF;
        RAISE EXCEPTION SQLSTATE 'SF000';
    EXCEPTION
        WHEN SQLSTATE 'SF000' THEN
            NULL;
        WHEN lock_not_available THEN
            -- This error is also raised when "lock_timeout" expires.
            IF waits THEN
                RAISE;
            END IF;
    END;
    RETURN moved;
END
$$;

-- The last tick that has IDs: the layout's last tick, or the last one that fits into the state, whichever is lower.
CREATE OR REPLACE FUNCTION snowflake_portable_last_tick(format snowflake_portable_format)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN least((format).last_tick, (1::bigint << (63 - snowflake_portable_bits())) - 1);

-- The end of the last tick, or infinity if timestamptz cannot represent it.
CREATE OR REPLACE FUNCTION snowflake_portable_end(format snowflake_portable_format)
    RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN snowflake_portable_last_tick(format) < (format).last_dated_tick
            THEN snowflake_portable_time(snowflake_portable_last_tick(format) + 1, format)
        ELSE 'infinity'
    END;

-- The identity of this database. It includes the server's system identifier if the role can read it. A copy has a different
-- identity.
CREATE OR REPLACE FUNCTION snowflake_portable_identity()
    RETURNS text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    server bigint;
BEGIN
    BEGIN
        server := (SELECT system_identifier FROM pg_control_system());
    EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported OR object_not_in_prerequisite_state THEN
        NULL;
    END;
    RETURN concat_ws(' of server ', (SELECT oid FROM pg_database WHERE datname = current_database()), server);
END
$$;

-- The function is IMMUTABLE because neither identity can change during a session. The planner can thus replace the call in
-- snowflake_nextval() with its result.
CREATE OR REPLACE FUNCTION snowflake_portable_here(configured text)
    RETURNS boolean LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT
AS $$
BEGIN
    RETURN configured = snowflake_portable_identity();
END
$$;

-- Waits for the duration of one tick if the next tick would be more than 100 ms ahead of the clock. Returns the tick of the state
-- before the wait. pg_sleep() is avoided for short waits, because it sleeps until the clock reaches a certain time and would take
-- longer if the clock were set back.
CREATE OR REPLACE FUNCTION snowflake_portable_throttle()
    RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
    tick_ms constant bigint := (snowflake_portable_own()).tick_ms;
    seen constant bigint := pg_sequence_last_value('snowflake_portable_state') >> snowflake_portable_bits();
    pause constant interval := make_interval(secs => tick_ms / 1000.0);
    begun constant timestamptz := clock_timestamp();
BEGIN
    IF seen < snowflake_portable_now() + greatest(100 / tick_ms, 1) THEN
        RETURN seen;
    ELSIF seen IS NULL THEN
        RETURN -1;
    ELSIF tick_ms = 1000 THEN
        PERFORM pg_sleep(1);
    ELSE
        WHILE clock_timestamp() > begun - pause AND clock_timestamp() < begun + pause LOOP
            NULL;
        END LOOP;
    END IF;
    RETURN seen;
END
$$;

-- Raises an error if this database or this transaction cannot issue IDs. "here" is NULL if no worker ID is configured, and false in
-- a copy.
CREATE OR REPLACE FUNCTION snowflake_portable_refuse(here boolean)
    RETURNS void LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction',
            MESSAGE = 'cannot issue an ID during recovery',
            HINT = 'Run the statement on the primary.';
    ELSIF current_setting('transaction_read_only')::boolean THEN
        RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction',
            MESSAGE = 'cannot issue an ID in a read-only transaction',
            DETAIL = 'IDs are drawn from a sequence, which a read-only transaction cannot change.',
            HINT = 'Use a read-write transaction.';
    ELSIF here IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'the worker ID is not configured',
            HINT = 'As the owner of the functions, call snowflake_configure(worker_id => 1), with a number that no other database and no '
                'server in the fleet has.';
    ELSIF NOT here THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'the worker ID was configured for a different database',
            DETAIL = format('It was configured for database %s, but this is database %s.',
                snowflake_portable_configured(), snowflake_portable_identity()),
            HINT = 'If the other database issues no more IDs, call snowflake_configure() with the same worker ID, as the owner of the '
                'functions. Otherwise, call it with a worker ID that no other database has.';
    END IF;
END
$$;

-- Returns an ID that no other caller has received. "drawn" is the value that the caller has drawn, or NULL.
CREATE OR REPLACE FUNCTION snowflake_portable_draw(drawn bigint, here boolean)
    RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
    format constant snowflake_portable_format := snowflake_portable_own();
    bits constant integer := snowflake_portable_bits();
    counter constant bigint := (1::bigint << bits) - 1;
    now constant bigint := snowflake_portable_now();
    pushed boolean := false;
BEGIN
    PERFORM snowflake_portable_refuse(here);
    LOOP
        IF drawn & counter <= format.sequence_max + 1 THEN
            IF pushed OR drawn >> bits >= now THEN
                RETURN snowflake_portable_id(drawn);
            ELSIF drawn >> bits < now - 10 / format.tick_ms THEN
                PERFORM snowflake_portable_push(true, NULL);
            ELSIF snowflake_portable_push(false, NULL) IS NULL THEN
                RETURN snowflake_portable_id(drawn);
            END IF;
        ELSE
            PERFORM snowflake_portable_push(true, snowflake_portable_throttle());
        END IF;
        -- After a push, currval() of this session returns the pushed value, so the session draws again.
        pushed := true;
        drawn := CASE WHEN pg_sequence_last_value('snowflake_portable_state') & counter <= format.sequence_max
            THEN nextval('snowflake_portable_state') END;
    END LOOP;
END
$$;
