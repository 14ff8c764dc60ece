-- The first two functions change the guarantees for IDs. Only superusers, and roles to which they grant EXECUTE, can call these
-- three.
REVOKE EXECUTE ON FUNCTION snowflake_accept_clock() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_set_mark(bigint, regclass, text, boolean) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_stat_reset() FROM PUBLIC;
-- A role that can draw numbers from one segment can draw from every segment, and can use up the numbers of each.
REVOKE EXECUTE ON FUNCTION snowflake_segment_nextval(text) FROM PUBLIC;
-- The state of the generator is visible only to roles that monitor the server, as with PostgreSQL's own statistics. To read a view,
-- a role also needs EXECUTE on the functions that the view calls.
REVOKE EXECUTE ON FUNCTION snowflake_status() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_last_issuer() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_registry_status() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_guard_status() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_stat_backends() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_segments() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_status() TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_last_issuer() TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_registry_status() TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_guard_status() TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_stat_backends() TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_segments() TO pg_monitor;
GRANT SELECT ON snowflake_status TO pg_monitor;
GRANT SELECT ON snowflake_stat_backends TO pg_monitor;
GRANT SELECT ON snowflake_segments TO pg_monitor;
