-- Both change what was promised about IDs: for superusers, and for whom they grant them to.
REVOKE EXECUTE ON FUNCTION snowflake_accept_clock() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_set_mark(bigint, regclass, text, boolean) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_stat_reset() FROM PUBLIC;
-- What the generator does is for who watches the server, as with PostgreSQL's own statistics. Who reads a view needs the right
-- to call the functions in it.
REVOKE EXECUTE ON FUNCTION snowflake_status() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_last_issuer() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_stat_backends() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_status() TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_last_issuer() TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_stat_backends() TO pg_monitor;
GRANT SELECT ON snowflake_status TO pg_monitor;
GRANT SELECT ON snowflake_stat_backends TO pg_monitor;
