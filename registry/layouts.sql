-- Layouts and epochs: reads them, and refuses invalid ones.

CREATE FUNCTION snowflake_registry.parse_layout(text text) RETURNS snowflake_registry.layout
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    result snowflake_registry.layout;
    part text[];
    tick text;
    sequence integer;
    hint constant text := 'Pass field widths in bits, such as "41:10:12" or "39:8s:16@10ms". To see the field widths and the epoch '
        'of a named layout, run "SELECT name, bits, epoch FROM snowflake_layouts" on a server that has snowflake_pg.';
BEGIN
    IF parse_layout.text IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'layout must not be null', HINT = hint;
    END IF;
    part := regexp_match(lower(btrim(left(parse_layout.text, 100))),
        '^0*([0-9]{1,2}):0*([0-9]{1,2})(s?):0*([0-9]{1,2})(?::0*([0-9]{1,2}))?(?:@(1ms|10ms|1s))?$');
    IF part IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid layout: "%s"', left(parse_layout.text, 100)), HINT = hint;
    END IF;
    tick := coalesce(part[6], '1ms');
    result.tick_us := CASE tick WHEN '1ms' THEN 1000 WHEN '10ms' THEN 10000 ELSE 1000000 END;
    result.timestamp_bits := part[1];
    IF part[3] = 's' THEN
        sequence := part[2];
        result.datacenter_bits := CASE WHEN part[5] IS NULL THEN 0 ELSE part[4]::integer END;
        result.worker_bits := coalesce(part[5], part[4]);
    ELSE
        sequence := coalesce(part[5], part[4]);
        result.datacenter_bits := CASE WHEN part[5] IS NULL THEN 0 ELSE part[2]::integer END;
        result.worker_bits := CASE WHEN part[5] IS NULL THEN part[2] ELSE part[4] END;
    END IF;
    result.low_bits := result.datacenter_bits + result.worker_bits + sequence;
    IF result.timestamp_bits < 1 OR sequence < 1 OR greatest(result.datacenter_bits, result.worker_bits, sequence) > 31
        OR result.timestamp_bits + result.low_bits > 63
    THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid layout: "%s"', left(parse_layout.text, 100)),
            DETAIL = 'The timestamp and the sequence must have at least 1 bit each, the other fields at most 31 bits each, and all '
                'fields together at most 63 bits.',
            HINT = hint;
    END IF;
    result.layout := part[1]::integer || ':' || part[2]::integer || part[3] || ':' || part[4]::integer
        || coalesce(':' || part[5]::integer, '') || CASE WHEN tick = '1ms' THEN '' ELSE '@' || tick END;
    RETURN result;
END
$$;

-- Epochs have the same range as in snowflake_pg: whole milliseconds from 1970 to 2199.
CREATE FUNCTION snowflake_registry.epoch_ms(epoch timestamptz) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF epoch IS NULL THEN
        RETURN 1288834974657;
    END IF;
    IF epoch < timestamptz '1970-01-01 00:00:00+00' OR epoch >= timestamptz '2200-01-01 00:00:00+00'
        OR epoch <> date_trunc('milliseconds', epoch)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('invalid epoch: "%s"', epoch),
            HINT = 'Pass a time from 1970-01-01 to 2199-12-31 UTC in whole milliseconds.';
    END IF;
    RETURN (extract(epoch FROM epoch_ms.epoch) * 1000)::bigint;
END
$$;
