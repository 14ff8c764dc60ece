-- Functions that issue IDs. They run with their owner's privileges, so that a role needs only EXECUTE. snowflake_configure()
-- replaces snowflake_nextval() with a function that contains the worker ID. draw.sql contains what they have in common: how a session
-- gets an ID, and when it waits.

DO $nextval$
BEGIN
    IF to_regprocedure(quote_ident(current_schema()) || '.snowflake_nextval()') IS NULL THEN
        CREATE FUNCTION snowflake_nextval()
            RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path FROM CURRENT
        AS $$
        BEGIN
            PERFORM snowflake_portable_refuse(NULL);
        END
        $$;
        -- The identity of the database, and the bits of its worker ID and datacenter ID. These values are stored in functions
        -- because a transaction with an old snapshot would not find them in a table.
        CREATE FUNCTION snowflake_portable_configured() RETURNS text LANGUAGE sql STABLE RETURN NULL::text;
        CREATE FUNCTION snowflake_portable_node() RETURNS bigint LANGUAGE sql STABLE RETURN NULL::bigint;
    END IF;
END
$nextval$;

-- Creates the three functions again with the configured values. snowflake_nextval() has no SET clause, which would cost as much as
-- the rest of the function. Its names and operators are qualified instead.
CREATE OR REPLACE FUNCTION snowflake_portable_write()
    RETURNS void LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $write$
DECLARE
    format constant snowflake_portable_format := snowflake_portable_own();
    configuration snowflake_portable_configuration;
BEGIN
    SELECT * INTO configuration FROM snowflake_portable_configuration;
    IF NOT FOUND THEN
        RETURN;
    ELSIF (configuration.layout, configuration.epoch_ms) IS DISTINCT FROM (format.layout, format.epoch_ms) THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = pg_catalog.format('IDs of this database have layout "%s"', configuration.layout),
            DETAIL = 'With a different layout or epoch, the functions might issue an ID again.',
            HINT = pg_catalog.format('Set "snowflake_pg.layout" to ''%s'' and "snowflake_pg.epoch" to %s, and run the script again.',
                configuration.layout, configuration.epoch_ms);
    END IF;
    EXECUTE pg_catalog.format(
        'CREATE OR REPLACE FUNCTION snowflake_portable_configured() RETURNS text LANGUAGE sql STABLE RETURN %L::text',
        configuration.database);
    EXECUTE pg_catalog.format(
        'CREATE OR REPLACE FUNCTION snowflake_portable_node() RETURNS bigint LANGUAGE sql STABLE RETURN %s::bigint',
        (configuration.worker_id::bigint << format.worker_shift) | (configuration.datacenter_id::bigint << format.datacenter_shift));
    EXECUTE replace(replace(pg_catalog.format($text$
        CREATE OR REPLACE FUNCTION snowflake_nextval() RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER AS $$
        DECLARE
            drawn bigint := CASE
                WHEN (pg_catalog.pg_sequence_last_value('@state'::pg_catalog.regclass) OPERATOR(pg_catalog.&) %2$s)
                    OPERATOR(pg_catalog.<) %3$s AND @schema.snowflake_portable_here('%1$s')
                THEN pg_catalog.nextval('@state'::pg_catalog.regclass)
            END;
        BEGIN
            -- The tick may be up to 2 ms behind the clock, so that the state need not be pushed in every millisecond.
            RETURN CASE
                WHEN (drawn OPERATOR(pg_catalog.&) %2$s) OPERATOR(pg_catalog.<=) %3$s
                    AND (drawn OPERATOR(pg_catalog.>>) %4$s) OPERATOR(pg_catalog.>) ((
                        pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000.0::double precision
                        OPERATOR(pg_catalog.-) %5$s::double precision) OPERATOR(pg_catalog./) %6$s::double precision)
                THEN ((drawn OPERATOR(pg_catalog.>>) %4$s) OPERATOR(pg_catalog.<<) %7$s)
                    OPERATOR(pg_catalog.+) ((drawn OPERATOR(pg_catalog.&) %2$s) OPERATOR(pg_catalog.*) %8$s)
                    OPERATOR(pg_catalog.+) %9$s::bigint
                ELSE @schema.snowflake_portable_draw(drawn, @schema.snowflake_portable_here('%1$s'))
            END;
        END
        $$$text$,
        configuration.database,
        (1::bigint << snowflake_portable_bits()) - 1,
        format.sequence_max + 1,
        snowflake_portable_bits(),
        -- The current tick may have begun up to one tick ago.
        format.epoch_ms + format.tick_ms + CASE format.tick_ms WHEN 1 THEN 2 ELSE 0 END,
        format.tick_ms,
        format.tick_shift,
        1::bigint << format.sequence_shift,
        -- Counters start at 1.
        snowflake_portable_node() - (1::bigint << format.sequence_shift)
    ), '@schema', quote_ident(current_schema())),
        '@state', replace((
            SELECT quote_ident(nspname) FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
            WHERE pg_class.oid = 'snowflake_portable_state'::regclass
        ), '''', '''''') || '.snowflake_portable_state');
END
$write$;

-- Converts a value of the state to an ID.
CREATE OR REPLACE FUNCTION snowflake_portable_id(drawn bigint)
    RETURNS bigint LANGUAGE plpgsql STABLE SET search_path FROM CURRENT
AS $$
DECLARE
    format constant snowflake_portable_format := snowflake_portable_own();
    bits constant integer := snowflake_portable_bits();
BEGIN
    RETURN ((drawn >> bits) << format.tick_shift) | (((drawn & ((1::bigint << bits) - 1)) - 1) << format.sequence_shift)
        | snowflake_portable_node();
END
$$;

CREATE OR REPLACE FUNCTION snowflake_portable_count(count integer, most bigint, more text)
    RETURNS void LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT
AS $$
BEGIN
    IF count < 1 OR count > most THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('count %s is out of range', count),
            DETAIL = format('The count must be from 1 to %s.', most),
            HINT = CASE WHEN count < 1 THEN 'Pass a count in that range.' ELSE more END;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_nextval_batch(count integer)
    RETURNS SETOF bigint LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
    PERFORM snowflake_portable_count(count, 10000000, 'For more IDs, call the function again.');
    RETURN QUERY SELECT snowflake_nextval() FROM generate_series(1, count);
END
$$;

-- The block is at the start of a new tick, from which no session has drawn yet.
CREATE OR REPLACE FUNCTION snowflake_reserve(count integer)
    RETURNS bigint LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    format constant snowflake_portable_format := snowflake_portable_own();
    tick bigint;
BEGIN
    PERFORM snowflake_portable_refuse(snowflake_portable_configured() = snowflake_portable_identity());
    IF format.sequence_shift > 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = pg_catalog.format('cannot reserve consecutive IDs with layout "%s"', format.layout),
            DETAIL = 'The sequence is not the least significant field of this layout.',
            HINT = 'Use snowflake_nextval_batch(), or use a layout in which the sequence is the least significant field.';
    END IF;
    PERFORM snowflake_portable_count(count, format.sequence_max + 1,
        'All reserved IDs must fit into one tick. For more IDs, use snowflake_nextval_batch().');
    WHILE tick IS NULL LOOP
        tick := snowflake_portable_push(true, snowflake_portable_throttle(), taken => count);
    END LOOP;
    RETURN tick << format.tick_shift | snowflake_portable_node();
END
$$;

CREATE OR REPLACE FUNCTION snowflake_currval()
    RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    format constant snowflake_portable_format := snowflake_portable_own();
    bits constant integer := snowflake_portable_bits();
    counter constant bigint := (1::bigint << bits) - 1;
    drawn bigint;
BEGIN
    BEGIN
        drawn := currval('snowflake_portable_state');
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
        NULL;
    END;
    -- Any other value was drawn by a statement that was cancelled before it returned an ID.
    IF drawn & counter BETWEEN 1 AND format.sequence_max + 1 THEN
        RETURN snowflake_portable_id(drawn);
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
        MESSAGE = 'no ID has been issued in this session yet',
        HINT = 'Call snowflake_nextval() first.';
END
$$;
