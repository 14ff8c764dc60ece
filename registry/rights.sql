-- No role can call a function until the owner grants it: snowflake_registry.grant_server() grants what a server needs. Members of
-- pg_monitor can read the views, and call the functions that the views call.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_registry FROM PUBLIC;
GRANT USAGE ON SCHEMA snowflake_registry TO pg_monitor;
GRANT SELECT ON snowflake_registry.status, snowflake_registry.servers, snowflake_registry.handovers,
    snowflake_registry.datacenters, snowflake_registry.segments, snowflake_registry.holes TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_registry.time_of(bigint, bigint, integer, bigint),
    snowflake_registry.about_number(jsonb, text), snowflake_registry.division_of(integer) TO pg_monitor;
