-- Functions that only their owner can call.

-- Assigns a worker ID to this database. Also allows a copy of a database to issue IDs.
CREATE OR REPLACE FUNCTION snowflake_configure(worker_id integer, datacenter_id integer DEFAULT 0)
    RETURNS void LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
#variable_conflict use_column
DECLARE
    format constant snowflake_portable_format := snowflake_portable_own();
    worker constant integer := worker_id;
    datacenter constant integer := datacenter_id;
    here constant text := snowflake_portable_identity();
    configured text;
BEGIN
    IF worker IS NULL OR datacenter IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
            MESSAGE = pg_catalog.format('argument "%s" must not be null',
                CASE WHEN worker IS NULL THEN 'worker_id' ELSE 'datacenter_id' END),
            HINT = 'Pass a number that is not used by any other database or by any server in the fleet.';
    END IF;
    -- Raises an error if the worker ID or the datacenter ID does not fit its field.
    PERFORM snowflake_encode(format.epoch AT TIME ZONE 'UTC', worker, 0, datacenter);
    LOCK TABLE snowflake_portable_configuration IN SHARE ROW EXCLUSIVE MODE;
    SELECT database INTO configured FROM snowflake_portable_configuration;
    IF configured <> here THEN
        -- The state belongs to the database from which this one was copied. No session can draw from it, because
        -- snowflake_nextval() compares the configured identity, which is still that of the original database until this transaction
        -- commits.
        PERFORM setval('snowflake_portable_mark', greatest(
            pg_sequence_last_value('snowflake_portable_mark'),
            pg_sequence_last_value('snowflake_portable_flushed'),
            (pg_sequence_last_value('snowflake_portable_state') >> snowflake_portable_bits()) + 1,
            0));
        PERFORM setval('snowflake_portable_state', 0, false), setval('snowflake_portable_flushed', 0, false);
    END IF;
    DELETE FROM snowflake_portable_configuration;
    INSERT INTO snowflake_portable_configuration VALUES (worker, datacenter, here, format.layout, format.epoch_ms);
    -- If the mark cannot be flushed, the error is raised here, before an application depends on IDs.
    PERFORM snowflake_portable_write(), snowflake_portable_flush();
END
$$;

-- Makes new IDs start at or above "mark". Returns the previous mark, if there was one. The mark cannot be lowered.
CREATE OR REPLACE FUNCTION snowflake_set_mark(mark bigint)
    RETURNS bigint LANGUAGE plpgsql VOLATILE STRICT SET search_path FROM CURRENT
AS $$
DECLARE
    format constant snowflake_portable_format := snowflake_portable_own();
    -- The tick of an ID at the mark, or the next tick if the mark is not the first ID of its tick.
    tick constant bigint := (mark >> format.tick_shift) + CASE WHEN mark & ((1::bigint << format.tick_shift) - 1) = 0 THEN 0 ELSE 1 END;
    before bigint;
BEGIN
    IF mark < 1 OR mark > format.last_id THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = pg_catalog.format('mark %s is out of range', mark),
            DETAIL = pg_catalog.format('The mark must be from 1 to %s, the largest ID of layout "%s".', format.last_id, format.layout),
            HINT = 'Pass the highest ID that might have been issued, plus 1.';
    ELSIF tick > snowflake_portable_now() + 86400000 / format.tick_ms THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = pg_catalog.format('mark %s is more than a day ahead of the clock', mark),
            DETAIL = pg_catalog.format('The clock shows %s.', snowflake_portable_utc(clock_timestamp())),
            HINT = 'Pass a mark whose timestamp is at most a day ahead of the clock. If any rows have IDs that are further ahead, first '
                'change those IDs or the worker ID of this database.';
    END IF;
    PERFORM snowflake_portable_refuse(snowflake_portable_configured() = snowflake_portable_identity());
    before := pg_sequence_last_value('snowflake_portable_mark');
    PERFORM snowflake_portable_push(true, NULL, lowest => tick);
    RETURN before << format.tick_shift;
END
$$;
