-- How a session gets one ID, and when it waits. state.sql explains why two sessions never draw the same value, even if the clock is set
-- back.

-- Waits for the duration of one tick if the next tick would be more than 100 ms ahead of the clock. Returns the tick of the state
-- before the wait. pg_sleep() is avoided for short waits, because it sleeps until the clock reaches a certain time and would take
-- longer if the clock were set back.
CREATE OR REPLACE FUNCTION snowflake_portable_throttle()
    RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
    tick_ms constant bigint := (snowflake_portable_own()).tick_ms;
    seen constant bigint := pg_sequence_last_value('snowflake_portable_state') >> snowflake_portable_bits();
    pause constant interval := make_interval(secs => tick_ms / 1000.0);
    begun constant timestamptz := clock_timestamp();
BEGIN
    IF seen < snowflake_portable_now() + greatest(100 / tick_ms, 1) THEN
        RETURN seen;
    ELSIF seen IS NULL THEN
        RETURN -1;
    ELSIF tick_ms = 1000 THEN
        PERFORM pg_sleep(1);
    ELSE
        WHILE clock_timestamp() > begun - pause AND clock_timestamp() < begun + pause LOOP
            NULL;
        END LOOP;
    END IF;
    RETURN seen;
END
$$;

-- Returns an ID that no other caller has received. "drawn" is the value that the caller has drawn, or NULL.
CREATE OR REPLACE FUNCTION snowflake_portable_draw(drawn bigint, here boolean)
    RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
    format constant snowflake_portable_format := snowflake_portable_own();
    bits constant integer := snowflake_portable_bits();
    counter constant bigint := (1::bigint << bits) - 1;
    now constant bigint := snowflake_portable_now();
    pushed boolean := false;
BEGIN
    PERFORM snowflake_portable_refuse(here);
    LOOP
        IF drawn & counter <= format.sequence_max + 1 THEN
            IF pushed OR drawn >> bits >= now THEN
                RETURN snowflake_portable_id(drawn);
            ELSIF drawn >> bits < now - 10 / format.tick_ms THEN
                PERFORM snowflake_portable_push(true, NULL);
            ELSIF snowflake_portable_push(false, NULL) IS NULL THEN
                RETURN snowflake_portable_id(drawn);
            END IF;
        ELSE
            PERFORM snowflake_portable_push(true, snowflake_portable_throttle());
        END IF;
        -- After a push, currval() of this session returns the pushed value, so the session draws again.
        pushed := true;
        drawn := CASE WHEN pg_sequence_last_value('snowflake_portable_state') & counter <= format.sequence_max
            THEN nextval('snowflake_portable_state') END;
    END LOOP;
END
$$;
