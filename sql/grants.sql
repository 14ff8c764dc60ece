-- Both change what was promised about IDs: for superusers, and for whom they grant them to.
REVOKE EXECUTE ON FUNCTION snowflake_accept_clock() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_set_mark(bigint, regclass, text, boolean) FROM PUBLIC;
