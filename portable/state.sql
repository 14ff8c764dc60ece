-- The state from which IDs are issued, and the only function that moves it to a later tick.
--
-- Sequence "snowflake_portable_state" counts tick << bits | counter. Counter n stands for the ID with sequence number n - 1, and 0 means
-- that no ID of the tick has been issued. A session draws with nextval(), after a look at the counter in the same expression. It does not
-- draw from a tick whose IDs are used up. As a result, a tick yields at most its IDs, and one discarded value for each session that looked
-- before they were used up. PostgreSQL has at most 2^18 sessions, and "bits" leaves room for four times as many values, so draws never
-- carry into the next tick. Only snowflake_portable_push() changes the tick, and a lock lets only one session do so at a time. As a result,
-- the tick that this function has read is still current when it writes, so it never lowers the state, whatever the clock does in the
-- meantime.
--
-- The state is unlogged: a crash, a promotion and a restore from a physical backup leave it without a value. Sequence
-- "snowflake_portable_mark" is logged and contains the first tick that no ID has. It is raised by a window and flushed before the first ID
-- of the window is issued, and a state without a value begins there. A session cannot see what was flushed, so unlogged sequence
-- "snowflake_portable_flushed" contains the tick below which the mark counts. It has no value after a crash either.
--
-- No session waits for a lock until the end of a transaction, because the lock is taken in a subtransaction that is always rolled back. The
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
    -- No row. The table is locked.
    CREATE TABLE snowflake_portable_lock ();
    -- At most one row: what snowflake_configure() has recorded.
    CREATE TABLE snowflake_portable_configuration (
        worker_id integer NOT NULL,
        datacenter_id integer NOT NULL,
        database text NOT NULL,
        layout text NOT NULL,
        epoch_ms bigint NOT NULL
    );
    CREATE UNIQUE INDEX snowflake_portable_configuration_key ON snowflake_portable_configuration ((true));
    -- Default privileges may have granted privileges to other roles.
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

-- The tick that the clock shows.
CREATE OR REPLACE FUNCTION snowflake_portable_now()
    RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN floor((date_part('epoch', clock_timestamp()) * 1000 - (snowflake_portable_own()).epoch_ms)
        / (snowflake_portable_own()).tick_ms)::bigint;

-- Flushes all WAL that exists now. No function of PostgreSQL does this before version 17. There, a table is truncated in the
-- transaction that creates it: PostgreSQL flushes WAL before it shortens the files of a table with a free space map. Where this does not
-- help, for example with "wal_level" minimal, the WAL writer flushes full pages. A server that does not show the positions in WAL, as
-- Amazon Aurora with its default parameters, cannot show that the mark is flushed. It issues no IDs, because a crash might repeat them.
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
            DETAIL = pg_catalog.format('The server answers: %s.', SQLERRM),
            HINT = 'No IDs are issued, because a crash might repeat them. If the server is Amazon Aurora, set "rds.logical_replication" to '
                '1 and restart the server.';
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
        -- Not with pg_sleep(), which a clock that is set back would prolong.
        WHILE pg_current_wal_flush_lsn() < written LOOP
            NULL;
        END LOOP;
    END IF;
END
$$;

-- Moves the state to the tick of the clock or, if all IDs of its tick are used up, to a later one. Returns NULL if the state need not move
-- or, without "waits", if a different session has the lock. Otherwise returns the new tick. The state does not move below tick "lowest".
-- The first "taken" IDs of the new tick belong to the caller. Far ahead of the clock, only a session that has waited since it saw tick
-- "seen" used up can move the state, so that its lead does not grow.
CREATE OR REPLACE FUNCTION snowflake_portable_push(waits boolean, seen bigint, lowest bigint DEFAULT 0, taken bigint DEFAULT 0)
    RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
    format constant snowflake_portable_format := snowflake_portable_own();
    bits constant integer := snowflake_portable_bits();
    -- IDs can be 100 ms ahead of the clock without a wait, and a window is 4 s long.
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
                -- A tick that is used up. Otherwise, each session that is cancelled during the flush would raise the mark by a window.
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
            -- Also raised after "lock_timeout".
            IF waits THEN
                RAISE;
            END IF;
    END;
    RETURN moved;
END
$$;

-- The last tick with IDs: that of the layout, or the last one that the state can contain.
CREATE OR REPLACE FUNCTION snowflake_portable_last_tick(format snowflake_portable_format)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN least((format).last_tick, (1::bigint << (63 - snowflake_portable_bits())) - 1);

-- The end of the last tick, or infinity.
CREATE OR REPLACE FUNCTION snowflake_portable_end(format snowflake_portable_format)
    RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN snowflake_portable_last_tick(format) < (format).last_dated_tick
            THEN snowflake_portable_time(snowflake_portable_last_tick(format) + 1, format)
        ELSE 'infinity'
    END;

-- The identity of this database and, where a role can read it, of its server. A copy has a different identity.
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

-- Neither can change during a session, so the planner replaces the call in snowflake_nextval() by its result.
CREATE OR REPLACE FUNCTION snowflake_portable_here(configured text)
    RETURNS boolean LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT
AS $$
BEGIN
    RETURN configured = snowflake_portable_identity();
END
$$;

-- Waits for a tick, if the next one would be more than 100 ms ahead of the clock. Returns the tick that was seen before. pg_sleep() would
-- not end before the clock shows its end, so a clock that is set back would prolong it.
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

-- Raises an error if this database or this transaction cannot issue IDs. "here" is NULL without a worker ID, and false in a copy.
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
            HINT = 'Use a transaction that can write.';
    ELSIF here IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'the worker ID is not configured',
            HINT = 'As the owner of the functions, call snowflake_configure(worker_id => 1), with a number that no other database and no '
                'server of the fleet has.';
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

-- Returns an ID that no other caller has. "drawn" is a value that the caller has drawn, or NULL.
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
        -- A push makes its value the last one of the session, so its session draws again.
        pushed := true;
        drawn := CASE WHEN pg_sequence_last_value('snowflake_portable_state') & counter <= format.sequence_max
            THEN nextval('snowflake_portable_state') END;
    END LOOP;
END
$$;
