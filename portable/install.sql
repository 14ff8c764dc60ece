-- Refuses to install the functions in a database that contains the extension, and creates the types.

DO $install$
DECLARE
    -- A layout with its epoch, and the values derived from them. A field with shift s and maximum m has the value (id >> s) & m.
    -- "epoch" is the start of tick 0 as a time in UTC, and "epoch_ms" is the same time in milliseconds since 1970.
    -- "last_dated_tick" is the last tick whose time is in the range of timestamptz. It can be above "last_tick".
    attributes constant text := 'layout text, epoch timestamp without time zone, epoch_ms bigint, tick_ms bigint, last_id bigint,'
        ' last_tick bigint, last_dated_tick bigint, tick_shift integer, datacenter_shift integer, datacenter_max bigint,'
        ' worker_shift integer, worker_max bigint, sequence_shift integer, sequence_max bigint';
    known regtype;
    -- Only one spelling of each ID matches, so that equal IDs are equal strings.
    digits constant text := '^[0-7][0-9A-HJKMNP-TV-Z]{12}$';
    known_check text;
    state_schema text := current_schema();
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'snowflake_pg') THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_object',
            MESSAGE = 'extension "snowflake_pg" is installed in this database',
            DETAIL = 'The extension has functions with the same names.',
            HINT = 'Use the functions of the extension. This script is for databases without the extension.';
    END IF;
    IF current_schema() IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
            MESSAGE = 'no schema has been selected to create the functions in',
            DETAIL = format('The search path is "%s".', current_setting('search_path')),
            HINT = 'Create a schema that is in the search path, for example with "CREATE SCHEMA snowflake", or set "search_path". '
                'Then run this script again.';
    END IF;
    -- A name has at most 63 bytes.
    WHILE octet_length(state_schema) > 57 LOOP
        state_schema := left(state_schema, -1);
    END LOOP;
    state_schema := state_schema || '_state';
    PERFORM set_config('snowflake_portable.state_schema', state_schema, true);
    -- Functions with "SET search_path FROM CURRENT" use this path. For roles that cannot use the second schema, the path does not
    -- contain it.
    PERFORM set_config('search_path', quote_ident(current_schema()) || ', ' || quote_ident(state_schema) || ', pg_temp', true);
    -- Remember the functions of an earlier version until the end of this script, because the owner may have changed their
    -- privileges.
    PERFORM set_config('snowflake_portable.known', coalesce((
        SELECT string_agg(oid::text, ' ') FROM pg_catalog.pg_proc
        WHERE pronamespace = quote_ident(current_schema())::regnamespace AND proname LIKE 'snowflake%'
    ), ''), true);
    known := to_regtype(quote_ident(current_schema()) || '.snowflake_portable_format');
    IF known IS NULL THEN
        EXECUTE format('CREATE TYPE snowflake_portable_format AS (%s)', attributes);
    ELSIF attributes IS DISTINCT FROM (
        SELECT string_agg(quote_ident(attname) || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
        FROM pg_catalog.pg_attribute
        WHERE attrelid = (SELECT typrelid FROM pg_catalog.pg_type WHERE oid = known) AND attnum > 0 AND NOT attisdropped
    ) THEN
        -- The type cannot be replaced, because functions and stored plans depend on its attributes.
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('type "%s.snowflake_portable_format" belongs to a different version of the functions', current_schema()),
            DETAIL = 'Its attributes differ from those that this version needs.',
            HINT = format('Run DROP TYPE %I.snowflake_portable_format CASCADE, which also drops the functions and everything that '
                'depends on them. Then run this script again.', current_schema());
    END IF;
    IF to_regtype(quote_ident(current_schema()) || '.snowflake_text') IS NULL THEN
        -- With this collation, the strings sort in the order of their IDs, regardless of the database's collation.
        CREATE DOMAIN snowflake_text AS text COLLATE "C";
    END IF;
    -- An earlier version of the type can have a different constraint. An identical constraint is kept, because PostgreSQL checks a
    -- new constraint against all values in tables.
    known_check := (
        SELECT pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint
        WHERE contypid = (quote_ident(current_schema()) || '.snowflake_text')::regtype AND conname = 'snowflake_text_digits'
    );
    IF known_check IS DISTINCT FROM format('CHECK ((VALUE ~ %L::text))', digits) THEN
        IF known_check IS NOT NULL THEN
            ALTER DOMAIN snowflake_text DROP CONSTRAINT snowflake_text_digits;
        END IF;
        EXECUTE format('ALTER DOMAIN snowflake_text ADD CONSTRAINT snowflake_text_digits CHECK (VALUE ~ %L)', digits);
    END IF;
END
$install$;
