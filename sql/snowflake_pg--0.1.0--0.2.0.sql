\echo Use "ALTER EXTENSION snowflake_pg UPDATE" to load this file. \quit

-- The first statement needs a function that the library of 0.1.0 lacks. A running server keeps the library with which it started,
-- even if the file on disk is replaced.
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

CREATE FUNCTION snowflake_last_issuer() RETURNS TABLE (last_issuer_worker_id integer, last_issuer_datacenter_id integer)
    VOLATILE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_last_issuer_wrapper';
REVOKE EXECUTE ON FUNCTION snowflake_last_issuer() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_last_issuer() TO pg_monitor;
COMMENT ON FUNCTION snowflake_last_issuer() IS
    'numbers of the server that wrote the high-water mark, as view snowflake_status shows them';
CREATE OR REPLACE VIEW snowflake_status AS SELECT * FROM snowflake_status(), snowflake_last_issuer();
-- Renames parameters so that named notation needs no quotes. Updates the catalog directly, because PostgreSQL renames parameters only
-- by DROP FUNCTION, which would also drop the views, constraints and policies that call the function. These store the position of an
-- argument. Their definitions still print the old names in named notation (docs/upgrading.md).
UPDATE pg_catalog.pg_proc
SET proargnames = (
    SELECT pg_catalog.array_agg(coalesce(new, old) ORDER BY place)
    FROM pg_catalog.unnest(proargnames) WITH ORDINALITY AS name (old, place)
    LEFT JOIN (VALUES ('from', 'start'), ('until', 'stop'), ('interval', 'step'), ('table', 'relation'), ('column', 'key'))
        AS change (was, new) ON was = old)
WHERE oid IN (
    'snowflake_between(bigint, timestamptz, timestamptz)'::pg_catalog.regprocedure,
    'snowflake_check(regclass, text, integer[])'::pg_catalog.regprocedure,
    'snowflake_create_partitions(regclass, interval, integer, timestamptz)'::pg_catalog.regprocedure,
    'snowflake_partition_bounds(timestamptz, timestamptz, interval)'::pg_catalog.regprocedure,
    'snowflake_set_mark(bigint, regclass, text, boolean)'::pg_catalog.regprocedure);
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
    'true where the time of an ID is at or after start and before stop; inlined, so that an index on the ID is used';

COMMENT ON FUNCTION snowflake_currval() IS
    'last ID issued to this session since it began or was discarded; through a transaction pooler it can be another client''s';

COMMENT ON FUNCTION snowflake_describe(bigint) IS
    'parts of an ID as JSON, with the layout and epoch they were read with; "id" is a string, because JSON readers round numbers';
CREATE FUNCTION snowflake_describe(id bigint, layout text) RETURNS jsonb IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_describe_layout_wrapper';
COMMENT ON FUNCTION snowflake_describe(bigint, text) IS
    'parts of an ID of a layout as JSON, with the epoch that goes with it';
CREATE FUNCTION snowflake_describe(id bigint, layout text, epoch timestamptz) RETURNS jsonb IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_describe_layout_epoch_wrapper';
COMMENT ON FUNCTION snowflake_describe(bigint, text, timestamptz) IS
    'parts of an ID of a layout and an epoch as JSON';
