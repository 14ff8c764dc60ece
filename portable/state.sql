-- The state from which IDs are issued. advance.sql advances it to a later tick, and draw.sql draws from it.
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
--
-- These objects are in a schema that only the owner can use. PostgreSQL locks the table or sequence in a statement before it checks the
-- privileges on it, so a role that can use the schema could make all sessions wait.

DO $state$
DECLARE
    format constant snowflake_portable_format := snowflake_portable_own();
    path constant text := current_setting('search_path');
    state_schema constant text := current_setting('snowflake_portable.state_schema');
    is_known constant boolean := EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = state_schema);
    closed record;
BEGIN
    EXECUTE pg_catalog.format(
        'CREATE OR REPLACE FUNCTION snowflake_portable_bits() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN %s',
        greatest(length(ltrim(format.sequence_max::bit(64)::text, '0')), 18) + 2);
    IF to_regprocedure(quote_ident(current_schema()) || '.snowflake_nextval()') IS NOT NULL THEN
        IF NOT is_known THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
                MESSAGE = pg_catalog.format('schema "%s" does not exist', state_schema),
                DETAIL = 'It contains the state from which the functions issue IDs.',
                HINT = pg_catalog.format('If you renamed the schema of the functions, also rename the schema of their state, with ALTER '
                    'SCHEMA .. RENAME TO %I. Then run this script again.', state_schema);
        END IF;
        RETURN;
    ELSIF is_known THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema',
            MESSAGE = pg_catalog.format('schema "%s" already exists', state_schema),
            DETAIL = 'The functions need a schema with this name for their state.',
            HINT = pg_catalog.format('If the schema remained after the functions were dropped, run DROP SCHEMA %I CASCADE. Then run this '
                'script again.', state_schema);
    END IF;
    EXECUTE pg_catalog.format('CREATE SCHEMA %I', state_schema);
    PERFORM set_config('search_path', quote_ident(state_schema), true);
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
    FOR closed IN
        SELECT DISTINCT objects.object, privilege.grantee
        FROM (
            SELECT pg_catalog.format('SCHEMA %I', nspname), nspowner, nspacl FROM pg_catalog.pg_namespace WHERE nspname = state_schema
            UNION ALL
            SELECT oid::regclass::text, relowner, relacl FROM pg_catalog.pg_class
            WHERE relnamespace = quote_ident(state_schema)::regnamespace
        ) AS objects (object, owner, acl), aclexplode(acl) AS privilege
        WHERE privilege.grantee <> owner
    LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON %s FROM %s', closed.object,
            CASE closed.grantee WHEN 0 THEN 'PUBLIC' ELSE closed.grantee::regrole::text END);
    END LOOP;
    PERFORM set_config('search_path', path, true);
END
$state$;

-- The current tick according to the clock.
CREATE OR REPLACE FUNCTION snowflake_portable_now()
    RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN floor((date_part('epoch', clock_timestamp()) * 1000 - (snowflake_portable_own()).epoch_ms)
        / (snowflake_portable_own()).tick_ms)::bigint;

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
