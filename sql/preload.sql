-- Warns if the library is not preloaded, with a hint. The function is not needed afterwards.
CREATE FUNCTION snowflake_warn_unless_preloaded() RETURNS void LANGUAGE c
    AS 'MODULE_PATHNAME', 'snowflake_warn_unless_preloaded_wrapper';
SELECT snowflake_warn_unless_preloaded();
DROP FUNCTION snowflake_warn_unless_preloaded();
