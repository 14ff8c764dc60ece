\echo Use "ALTER EXTENSION snowflake_pg UPDATE" to load this file. \quit

-- First what the library of 0.1.0 lacks: a server keeps the library it has started with, whatever the file on disk.
DO $do$
BEGIN
    CREATE FUNCTION snowflake_version() RETURNS text STABLE STRICT PARALLEL SAFE
        LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_version_wrapper';
EXCEPTION WHEN undefined_function THEN
    RAISE EXCEPTION USING
        ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = 'this session runs the library of snowflake_pg 0.1.0',
        DETAIL = 'Version 0.2.0 has functions that it lacks.',
        HINT = 'Install the new library, restart the server, and try again in a new session.';
END
$do$;
COMMENT ON FUNCTION snowflake_version() IS
    'version of the library that this session runs';
