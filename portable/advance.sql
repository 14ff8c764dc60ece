-- How the state advances to a later tick: flushed first, then written by one session at a time. draw.sql determines when a session
-- waits for the clock, and when it advances the state.

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
    -- The function sends no message while it holds the lock, because the client might not read it.
    SET client_min_messages = error SET exit_on_error = off
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
            -- This mode does not conflict with that of nextval(), which locks even a table by its OID.
            LOCK TABLE snowflake_portable_lock IN SHARE UPDATE EXCLUSIVE MODE;
        ELSE
            LOCK TABLE snowflake_portable_lock IN SHARE UPDATE EXCLUSIVE MODE NOWAIT;
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
