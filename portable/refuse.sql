-- When a database issues no IDs: without a worker ID, in a copy, on a standby, or beyond the layout.

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
