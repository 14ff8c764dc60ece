-- Any role can decode IDs. Only the owner, and roles to which the owner grants EXECUTE, can issue IDs.
DO $rights$
DECLARE
    closed constant text[] := ARRAY['snowflake_configure', 'snowflake_set_mark', 'snowflake_portable_push', 'snowflake_portable_draw',
        'snowflake_portable_throttle', 'snowflake_portable_refuse', 'snowflake_portable_flush', 'snowflake_portable_write',
        'snowflake_portable_id', 'snowflake_portable_node', 'snowflake_portable_here',
        'snowflake_portable_configured'];
    -- The functions of an earlier version. The owner decides which roles can call the functions that run with the owner's
    -- privileges. By default, only the owner can call new ones.
    known constant oid[] := string_to_array(current_setting('snowflake_portable.known'), ' ')::oid[];
    privilege_of record;
BEGIN
    FOR privilege_of IN
        SELECT DISTINCT pg_proc.oid::regprocedure AS function, privilege.grantee
        FROM pg_catalog.pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) AS privilege
        WHERE pronamespace = quote_ident(current_schema())::regnamespace AND privilege.grantee <> proowner
            AND (proname = ANY (closed) OR prosecdef AND proname LIKE 'snowflake%' AND pg_proc.oid <> ALL (known))
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', privilege_of.function,
            CASE privilege_of.grantee WHEN 0 THEN 'PUBLIC' ELSE privilege_of.grantee::regrole::text END);
    END LOOP;
    -- Copies the worker ID into the new version of the functions.
    PERFORM snowflake_portable_write();
END
$rights$;
