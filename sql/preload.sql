-- Warns, with a hint, if the library is not preloaded. The function is then no longer needed.
CREATE FUNCTION snowflake_warn_unless_preloaded() RETURNS void LANGUAGE c
    AS 'MODULE_PATHNAME', 'snowflake_warn_unless_preloaded_wrapper';
SELECT snowflake_warn_unless_preloaded();
DROP FUNCTION snowflake_warn_unless_preloaded();
