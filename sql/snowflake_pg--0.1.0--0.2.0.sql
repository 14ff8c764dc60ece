\echo Use "ALTER EXTENSION snowflake_pg UPDATE" to load this file. \quit

-- The first statement needs a function that the 0.1.0 library does not have. A running server keeps the library with which it
-- started, even if the file on disk is replaced.
DO $do$
BEGIN
    CREATE FUNCTION snowflake_version() RETURNS text STABLE STRICT PARALLEL SAFE
        LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_version_wrapper';
EXCEPTION WHEN undefined_function THEN
    RAISE EXCEPTION USING
        ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = 'this session runs the library of snowflake_pg 0.1.0',
        DETAIL = 'Version 0.2.0 has functions that this library does not have.',
        HINT = 'Install the new library, restart the server, and retry in a new session.';
END
$do$;
COMMENT ON FUNCTION snowflake_version() IS
    'version of the extension library that is loaded in this session';

CREATE FUNCTION snowflake_last_issuer() RETURNS TABLE (last_issuer_worker_id integer, last_issuer_datacenter_id integer)
    VOLATILE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_last_issuer_wrapper';
REVOKE EXECUTE ON FUNCTION snowflake_last_issuer() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_last_issuer() TO pg_monitor;
COMMENT ON FUNCTION snowflake_last_issuer() IS
    'worker ID and datacenter ID of the server that wrote the high-water mark, as shown by view snowflake_status';
CREATE FUNCTION snowflake_registry_status() RETURNS TABLE (registry_state text, worker_id_since timestamptz,
    granted_until timestamptz, last_heartbeat timestamptz, failed_heartbeats bigint, heartbeat_error text, clock_offset interval,
    fenced_by text, fenced_at timestamptz)
    VOLATILE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_registry_status_wrapper';
REVOKE EXECUTE ON FUNCTION snowflake_registry_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_registry_status() TO pg_monitor;
COMMENT ON FUNCTION snowflake_registry_status() IS
    'worker ID and grant that this server received from the registry, as shown by view snowflake_status';
CREATE FUNCTION snowflake_guard(relation regclass, key text DEFAULT NULL) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_guard_wrapper';
CREATE FUNCTION snowflake_guard_row() RETURNS trigger
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_guard_row_wrapper';
CREATE FUNCTION snowflake_guard_status() RETURNS TABLE (guard_refusals bigint, last_guard_refusal_id bigint,
    last_guard_refusal_at timestamptz)
    VOLATILE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_guard_status_wrapper';
REVOKE EXECUTE ON FUNCTION snowflake_guard_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_guard_status() TO pg_monitor;
COMMENT ON FUNCTION snowflake_guard(regclass, text) IS
    'create or enable a guard on a table; the guard refuses replicated rows whose IDs have the worker ID of this server';
COMMENT ON FUNCTION snowflake_guard_row() IS
    'trigger function of a guard; snowflake_guard() creates the trigger';
COMMENT ON FUNCTION snowflake_guard_status() IS
    'number of replicated rows that guards have refused, and the last such row, as shown by view snowflake_status';
-- Otherwise, the planner expects the view to have 10^12 rows, and PostgreSQL compiles (jit) each query that reads it.
ALTER FUNCTION snowflake_status() ROWS 1;
ALTER FUNCTION snowflake_last_issuer() ROWS 1;
ALTER FUNCTION snowflake_registry_status() ROWS 1;
ALTER FUNCTION snowflake_guard_status() ROWS 1;
CREATE OR REPLACE VIEW snowflake_status AS
    SELECT * FROM snowflake_status(), snowflake_last_issuer(), snowflake_registry_status(), snowflake_guard_status();

CREATE FUNCTION snowflake_create_series(series text, template text, kind text DEFAULT 'gapless', time_zone text DEFAULT NULL,
    start bigint DEFAULT 1) RETURNS regclass
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_create_series_wrapper';
CREATE FUNCTION snowflake_alter_series(series regclass, template text DEFAULT NULL, time_zone text DEFAULT NULL,
    start bigint DEFAULT NULL) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_alter_series_wrapper';
CREATE FUNCTION snowflake_series_row() RETURNS trigger
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_series_row_wrapper';
CREATE FUNCTION snowflake_series() RETURNS TABLE (series regclass, template text, kind text, time_zone text, start bigint)
    STABLE STRICT PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_series_wrapper';
CREATE VIEW snowflake_series AS SELECT * FROM snowflake_series();
GRANT SELECT ON snowflake_series TO PUBLIC;
CREATE FUNCTION snowflake_serial(series regclass, at timestamptz DEFAULT pg_catalog.now()) RETURNS text
    VOLATILE STRICT PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_serial_wrapper';
CREATE FUNCTION snowflake_serial(series regclass, at date) RETURNS text
    VOLATILE STRICT PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_serial_of_day_wrapper';
CREATE FUNCTION snowflake_serial_parse(series regclass, serial text) RETURNS TABLE (period text, number bigint)
    STABLE STRICT PARALLEL SAFE ROWS 1 LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_serial_parse_wrapper';
CREATE FUNCTION snowflake_serial_gaps(relation regclass, key text, series regclass)
    RETURNS TABLE (period text, first_number bigint, last_number bigint)
    STABLE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_serial_gaps_wrapper';
CREATE FUNCTION snowflake_number_at_commit(relation regclass, key text, series regclass, date_key text DEFAULT NULL) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_number_at_commit_wrapper';
CREATE FUNCTION snowflake_number_row() RETURNS trigger
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_number_row_wrapper';
CREATE FUNCTION snowflake_number_keep() RETURNS trigger
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_number_keep_wrapper';
COMMENT ON FUNCTION snowflake_create_series(text, text, text, text, bigint) IS
    'create a series: a table that stores the last number of each period';
COMMENT ON FUNCTION snowflake_alter_series(regclass, text, text, bigint) IS
    'change the template, the time zone or the first number of a series';
COMMENT ON FUNCTION snowflake_series_row() IS
    'trigger function of a series; snowflake_create_series() creates the trigger';
COMMENT ON FUNCTION snowflake_series() IS
    'series on which the current user has privileges, as shown by view snowflake_series';
COMMENT ON VIEW snowflake_series IS
    'series on which the current user has privileges, with their definitions';
COMMENT ON FUNCTION snowflake_serial(regclass, timestamptz) IS
    'issue the next serial of a series for the period that contains the given time';
COMMENT ON FUNCTION snowflake_serial(regclass, date) IS
    'issue the next serial of a series for the period that contains the given day';
COMMENT ON FUNCTION snowflake_serial_parse(regclass, text) IS
    'period and number of a serial';
COMMENT ON FUNCTION snowflake_serial_gaps(regclass, text, regclass) IS
    'issued numbers of a series that are missing from the given column';
COMMENT ON FUNCTION snowflake_number_at_commit(regclass, text, regclass, text) IS
    'create triggers that number the rows of a table at the end of each transaction';
COMMENT ON FUNCTION snowflake_number_row() IS
    'trigger function that numbers a row; snowflake_number_at_commit() creates the trigger';
COMMENT ON FUNCTION snowflake_number_keep() IS
    'trigger function that rejects statements that write or remove numbers; snowflake_number_at_commit() creates the trigger';

-- Renames parameters so that named notation needs no quotes. The catalog is updated directly, because PostgreSQL can rename
-- parameters only after DROP FUNCTION, which would also drop the views, constraints and policies that call the function. These
-- objects store argument positions. Their definitions still show the old names in named notation (docs/upgrading.md).
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
    'true if the time in the given ID is at or after start and before stop; queries that call the function can use an index on the ID';

COMMENT ON FUNCTION snowflake_nextval_batch(integer) IS
    'issue the given number of IDs, which increase but are not necessarily consecutive';
COMMENT ON FUNCTION snowflake_reserve(integer) IS
    'issue the given number of consecutive IDs within one tick, and return the first of them';
COMMENT ON FUNCTION snowflake_currval() IS
    'last ID issued to this session; behind a transaction pooler, the ID might have been issued to a different client';

COMMENT ON FUNCTION snowflake_describe(bigint) IS
    'parts of an ID as JSON, decoded with the layout and epoch of this server; "id" is a string, because many JSON parsers round numbers';
CREATE FUNCTION snowflake_describe(id bigint, layout text) RETURNS jsonb IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_describe_layout_wrapper';
COMMENT ON FUNCTION snowflake_describe(bigint, text) IS
    'parts of an ID as JSON, decoded with the given layout and its default epoch';
CREATE FUNCTION snowflake_describe(id bigint, layout text, epoch timestamptz) RETURNS jsonb IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_describe_layout_epoch_wrapper';
COMMENT ON FUNCTION snowflake_describe(bigint, text, timestamptz) IS
    'parts of an ID as JSON, decoded with the given layout and epoch';

COMMENT ON FUNCTION snowflake_decode(bigint) IS
    'parts of an ID, decoded with the layout and epoch of this server';
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
    'time encoded in an ID, according to the layout and epoch of this server';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer) IS
    'ID with the given parts, encoded with the layout and epoch of this server';
COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS
    'first ID of the tick that contains the given time';
COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS
    'last ID of the tick that contains the given time';
COMMENT ON FUNCTION snowflake_first_id_from(timestamptz) IS
    'first ID at or after the given time; after the layout''s last tick, a number above all IDs, or NULL in a 63-bit layout';
COMMENT ON FUNCTION snowflake_last_id_before(timestamptz) IS
    'last ID before the given time, or -1 if there is none';
COMMENT ON FUNCTION snowflake_accept_clock() IS
    'accept the current time of the server''s clock, and return how far the time in new IDs moved forward';
COMMENT ON FUNCTION snowflake_set_mark(bigint, regclass, text, boolean) IS
    'set the high-water mark and return the old one; to lower it, pass a table whose IDs are below the new mark, or force => true';
COMMENT ON FUNCTION snowflake_check(regclass, text, integer[]) IS
    'find duplicate IDs, IDs that this server has not issued, and values that are not IDs; return no rows if the table contains none';
COMMENT ON FUNCTION snowflake_status() IS
    'state of the ID generator, as shown by view snowflake_status';
COMMENT ON VIEW snowflake_status IS
    'state of the ID generator: identity of this server, last ID, clock, high-water mark, and statistics';
COMMENT ON FUNCTION snowflake_stat_backends() IS
    'number of IDs issued to each backend, and how often and how long the backend waited, as shown by view snowflake_stat_backends';
COMMENT ON VIEW snowflake_stat_backends IS
    'number of IDs issued to each backend, and how often and how long the backend waited';
COMMENT ON FUNCTION snowflake_stat_reset() IS
    'reset all counts in snowflake_status and snowflake_stat_backends to 0';
COMMENT ON FUNCTION snowflake_decode(bigint, text) IS
    'parts of an ID, decoded with the given layout and its default epoch';
COMMENT ON FUNCTION snowflake_decode(bigint, text, timestamptz) IS
    'parts of an ID, decoded with the given layout and epoch';
COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS
    'time encoded in an ID, according to the given layout and its default epoch';
COMMENT ON FUNCTION snowflake_timestamp(bigint, text, timestamptz) IS
    'time encoded in an ID, according to the given layout and epoch';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, text) IS
    'ID with the given parts, encoded with the given layout and its default epoch';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, text, timestamptz) IS
    'ID with the given parts, encoded with the given layout and epoch';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer, text) IS
    'ID with the given parts, encoded with the given layout and its default epoch';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer, text, timestamptz) IS
    'ID with the given parts, encoded with the given layout and epoch';
COMMENT ON FUNCTION snowflake_min_id(timestamptz, text) IS
    'first ID of the tick that contains the given time, for the given layout and its default epoch';
COMMENT ON FUNCTION snowflake_min_id(timestamptz, text, timestamptz) IS
    'first ID of the tick that contains the given time, for the given layout and epoch';
COMMENT ON FUNCTION snowflake_max_id(timestamptz, text) IS
    'last ID of the tick that contains the given time, for the given layout and its default epoch';
COMMENT ON FUNCTION snowflake_max_id(timestamptz, text, timestamptz) IS
    'last ID of the tick that contains the given time, for the given layout and epoch';
COMMENT ON FUNCTION snowflake_to_text(bigint) IS
    'ID as a 13-character string that sorts like the ID';
COMMENT ON FUNCTION snowflake_from_text(text) IS
    'ID for a string returned by snowflake_to_text()';
COMMENT ON DOMAIN snowflake_text IS
    'ID as text that sorts by byte value, regardless of the database collation';
COMMENT ON FUNCTION snowflake_layouts() IS
    'named layouts, as shown by view snowflake_layouts';
COMMENT ON VIEW snowflake_layouts IS
    'named layouts: field widths in bits, length of a tick, epoch, and contents of each field';
COMMENT ON FUNCTION snowflake_partition_bounds(timestamptz, timestamptz, interval) IS
    'bounds of the partitions that cover a time range, both as times and as IDs';
COMMENT ON FUNCTION snowflake_create_partitions(regclass, interval, integer, timestamptz) IS
    'create the missing partitions of a table, starting with the interval that contains the given time';

CREATE FUNCTION snowflake_segment_nextval(tag text) RETURNS bigint
    VOLATILE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_segment_nextval_wrapper';
REVOKE EXECUTE ON FUNCTION snowflake_segment_nextval(text) FROM PUBLIC;
CREATE FUNCTION snowflake_copy_support(internal) RETURNS internal
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_copy_support_wrapper';
CREATE FUNCTION snowflake_copy_nextval() RETURNS bigint
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_copy_nextval_wrapper';
CREATE FUNCTION snowflake_copy_segment(tag text) RETURNS bigint
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_copy_segment_wrapper';
ALTER FUNCTION snowflake_nextval() SUPPORT snowflake_copy_support;
ALTER FUNCTION snowflake_segment_nextval(text) SUPPORT snowflake_copy_support;
ALTER FUNCTION snowflake_copy_nextval() COST 100;
ALTER FUNCTION snowflake_copy_segment(text) COST 100;
COMMENT ON FUNCTION snowflake_copy_support(internal) IS
    'planner support function that lets COPY insert rows in batches';
COMMENT ON FUNCTION snowflake_copy_nextval() IS
    'issue one ID during COPY; elsewhere, call snowflake_nextval()';
COMMENT ON FUNCTION snowflake_copy_segment(text) IS
    'draw the next number of a segment during COPY; elsewhere, call snowflake_segment_nextval()';
CREATE FUNCTION snowflake_segments() RETURNS TABLE (tag text, state text, generation bigint, next_number bigint,
    numbers_left bigint, lasts interval, rate double precision, step bigint, fetches bigint, waits bigint, last_error text)
    VOLATILE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_segments_wrapper';
CREATE VIEW snowflake_segments AS SELECT * FROM snowflake_segments();
REVOKE EXECUTE ON FUNCTION snowflake_segments() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_segments() TO pg_monitor;
GRANT SELECT ON snowflake_segments TO pg_monitor;
COMMENT ON FUNCTION snowflake_segment_nextval(text) IS
    'draw the next number of a segment';
COMMENT ON FUNCTION snowflake_segments() IS
    'segments from which this server issues numbers, as shown by view snowflake_segments';
COMMENT ON VIEW snowflake_segments IS
    'segments from which this server issues numbers: the next number, how many numbers are left, and how long they will last';

CREATE FUNCTION snowflake_conceal(id bigint, key bytea, tweak bytea DEFAULT '') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE COST 100 LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_conceal_wrapper';
CREATE FUNCTION snowflake_reveal(concealed bigint, key bytea, tweak bytea DEFAULT '') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE COST 100 LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_reveal_wrapper';
CREATE FUNCTION snowflake_conceal_text(id bigint, key bytea, tweak bytea DEFAULT '') RETURNS snowflake_text
    IMMUTABLE STRICT PARALLEL SAFE COST 100 LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_conceal_text_wrapper';
CREATE FUNCTION snowflake_reveal_text(concealed text, key bytea, tweak bytea DEFAULT '') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE COST 100 LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_reveal_text_wrapper';
COMMENT ON FUNCTION snowflake_conceal(bigint, bytea, bytea) IS
    'conceal an ID: return a positive number that reveals neither the time nor the server in the ID';
COMMENT ON FUNCTION snowflake_reveal(bigint, bytea, bytea) IS
    'original ID for a number returned by snowflake_conceal(), given the same key and tweak';
COMMENT ON FUNCTION snowflake_conceal_text(bigint, bytea, bytea) IS
    'conceal an ID, and return the result as a 13-character string';
COMMENT ON FUNCTION snowflake_reveal_text(text, bytea, bytea) IS
    'original ID for a string returned by snowflake_conceal_text(), given the same key and tweak';

CREATE FUNCTION snowflake_to_uuid(id bigint) RETURNS uuid
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_to_uuid_wrapper';
CREATE FUNCTION snowflake_from_uuid(uuid uuid) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_from_uuid_wrapper';
COMMENT ON FUNCTION snowflake_to_uuid(bigint) IS
    'ID as a version 8 UUID that sorts like the ID';
COMMENT ON FUNCTION snowflake_from_uuid(uuid) IS
    'ID for a UUID returned by snowflake_to_uuid()';
