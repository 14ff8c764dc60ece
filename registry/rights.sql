-- Who can do what in the registry.

-- The script does not create a role, because that would need CREATEROLE, and because a dump of one database contains no roles. The
-- owner creates the role instead.
CREATE FUNCTION snowflake_registry.grant_server(role name) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF role IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'argument "role" must not be null',
            HINT = 'Pass the role that the servers use to connect to the registry.';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = role) THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('role "%s" does not exist', role),
            HINT = 'Create the role first. Access to the registry cannot be granted to PUBLIC.';
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA snowflake_registry TO %I', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_registry.hello, snowflake_registry.claim, snowflake_registry.renew, '
        'snowflake_registry.take, snowflake_registry.give_back, snowflake_registry.report, '
        'snowflake_registry.begin_segment TO %I', role);
END
$$;

-- No role can call a function until the owner grants it: snowflake_registry.grant_server() grants what a server needs. Members of
-- pg_monitor can read the views, and call the functions that the views call.
REVOKE ALL ON SCHEMA snowflake_registry FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_registry FROM PUBLIC;
GRANT USAGE ON SCHEMA snowflake_registry TO pg_monitor;
GRANT SELECT ON snowflake_registry.status, snowflake_registry.servers, snowflake_registry.handovers,
    snowflake_registry.datacenters, snowflake_registry.segments, snowflake_registry.holes TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_registry.time_of(bigint, bigint, integer, bigint),
    snowflake_registry.about_number(jsonb, text), snowflake_registry.division_of(integer) TO pg_monitor;
