-- Comments on the functions. Each comment applies to all overloaded forms of a function.

DO $comments$
DECLARE
    comment record;
BEGIN
    FOR comment IN
        SELECT function.oid::regprocedure AS function, texts.text
        FROM (VALUES
            ('snowflake_decode', 'parts of an ID'),
            ('snowflake_describe', 'parts of an ID as JSON, with the layout and the epoch'),
            ('snowflake_timestamp', 'time encoded in an ID'),
            ('snowflake_encode', 'ID with the given parts; the function does not issue this ID'),
            ('snowflake_min_id', 'first ID of the tick that contains a time'),
            ('snowflake_max_id', 'last ID of the tick that contains a time'),
            ('snowflake_first_id_from', 'first ID at or after a time'),
            ('snowflake_last_id_before', 'last ID before a time'),
            ('snowflake_between', 'true if the time in the ID is at or after start and before stop; queries can use an index on the ID'),
            ('snowflake_to_text', 'ID as a 13-character string that sorts like the ID'),
            ('snowflake_from_text', 'ID for a string returned by snowflake_to_text()'),
            ('snowflake_check', 'duplicate IDs, IDs from the future or from unexpected workers, and values that are not IDs'),
            ('snowflake_configure', 'sets the worker ID of the database, so that it can issue IDs'),
            ('snowflake_nextval', 'issues an ID'),
            ('snowflake_nextval_batch', 'issues the given number of increasing IDs'),
            ('snowflake_reserve', 'issues the given number of consecutive IDs within one tick, and returns the first of them'),
            ('snowflake_currval', 'last ID issued in this session'),
            ('snowflake_set_mark', 'sets the mark, and returns the previous one; new IDs begin at or above the mark'),
            ('snowflake_status', 'state of the ID generator, as shown by view snowflake_status'),
            ('snowflake_portable_own', 'layout and epoch that the functions use when they are called without a layout')
        ) AS texts (name, text)
            JOIN pg_catalog.pg_proc AS function
                ON function.proname = texts.name AND function.pronamespace = quote_ident(current_schema())::regnamespace
    LOOP
        EXECUTE format('COMMENT ON FUNCTION %s IS %L', comment.function, comment.text);
    END LOOP;
END
$comments$;

COMMENT ON DOMAIN snowflake_text IS 'ID as a 13-character string that sorts like the ID';
COMMENT ON VIEW snowflake_layouts IS 'named layouts: field widths in bits, length of a tick, epoch, and contents of each field';
COMMENT ON VIEW snowflake_status IS 'state of the ID generator: worker ID, last ID, lead over the clock, and mark';
