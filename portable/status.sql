-- The state of the generator, for roles that monitor the database. The columns are the first columns of the library's view.
CREATE OR REPLACE FUNCTION snowflake_status()
    RETURNS TABLE (state text, problem text, hint text, worker_id integer, datacenter_id integer, layout text, epoch timestamptz,
        last_id bigint, last_id_at timestamptz, lead interval, mark bigint, mark_lead interval, exhaustion_date timestamptz)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
#variable_conflict use_column
DECLARE
    format constant snowflake_portable_format := snowflake_portable_own();
    bits constant integer := snowflake_portable_bits();
    configuration snowflake_portable_configuration;
    drawn bigint;
    marked bigint;
BEGIN
    SELECT * INTO configuration FROM snowflake_portable_configuration;
    layout := format.layout;
    epoch := format.epoch AT TIME ZONE 'UTC';
    worker_id := configuration.worker_id;
    datacenter_id := configuration.datacenter_id;
    exhaustion_date := snowflake_portable_end(format);
    IF NOT pg_is_in_recovery() THEN
        drawn := pg_sequence_last_value('snowflake_portable_state');
        marked := pg_sequence_last_value('snowflake_portable_mark');
    END IF;
    mark := marked << format.tick_shift;
    mark_lead := snowflake_portable_time(marked, format) - clock_timestamp();
    BEGIN
        PERFORM snowflake_portable_refuse(snowflake_portable_configured() = snowflake_portable_identity());
        state := CASE WHEN drawn IS NULL THEN 'idle' ELSE 'issuing' END;
    EXCEPTION WHEN object_not_in_prerequisite_state OR read_only_sql_transaction THEN
        state := CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'refused' END;
        GET STACKED DIAGNOSTICS problem = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
    END;
    IF drawn IS NOT NULL THEN
        lead := snowflake_portable_time(drawn >> bits, format) - clock_timestamp();
        -- Values beyond the last ID of the tick are discarded.
        last_id := snowflake_portable_id(((drawn >> bits) << bits)
            | least(greatest(drawn & ((1::bigint << bits) - 1), 1), format.sequence_max + 1));
        last_id_at := snowflake_portable_time(drawn >> bits, format);
    END IF;
    RETURN NEXT;
END
$$;

CREATE OR REPLACE VIEW snowflake_status AS SELECT * FROM snowflake_status();
