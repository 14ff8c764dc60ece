-- Points, which are times as numbers in ID space, and arithmetic with them.

CREATE FUNCTION snowflake_registry.sum_of(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT CASE WHEN a > 9223372036854775807 - b THEN 9223372036854775807 ELSE a + b END $$;

CREATE FUNCTION snowflake_registry.time_of(point bigint, epoch bigint, low_bits integer, tick_us bigint) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- Microseconds since 1970. The product of the widest timestamp and the longest tick does not fit into a bigint.
    us numeric := epoch::numeric * 1000 + (point >> low_bits)::numeric * tick_us;
    hour constant numeric := 3600000000;
BEGIN
    IF us > 9200000000000000000 THEN
        RETURN 'infinity';
    END IF;
    -- Unlike days, hours and microseconds are exact and do not depend on the time zone.
    RETURN timestamptz '1970-01-01 00:00:00+00' + make_interval(hours => div(us, hour)::integer)
        + mod(us, hour)::double precision * interval '1 microsecond';
END
$$;

CREATE FUNCTION snowflake_registry.point_of(
    t timestamptz, epoch bigint, timestamp_bits integer, low_bits integer, tick_us bigint
) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    tick numeric := floor((extract(epoch FROM t) * 1000000 - epoch::numeric * 1000) / tick_us);
BEGIN
    IF tick < 0 THEN
        RETURN 0;
    END IF;
    IF tick >= 2::numeric ^ timestamp_bits THEN
        RETURN (2::numeric ^ (timestamp_bits + low_bits) - 1)::bigint;
    END IF;
    RETURN tick::bigint << low_bits;
END
$$;

CREATE FUNCTION snowflake_registry.span_of(d interval, low_bits integer, tick_us bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT least(ceil(extract(epoch FROM d) * 1000000 / tick_us) * 2::numeric ^ low_bits, 9223372036854775807)::bigint
$$;

CREATE FUNCTION snowflake_registry.time_of(f snowflake_registry.fleet, point bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.time_of(point, f.epoch, f.low_bits, f.tick_us) $$;

CREATE FUNCTION snowflake_registry.point_of(f snowflake_registry.fleet, t timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.point_of(t, f.epoch, f.timestamp_bits, f.low_bits, f.tick_us) $$;

CREATE FUNCTION snowflake_registry.span_of(f snowflake_registry.fleet, d interval) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.span_of(d, f.low_bits, f.tick_us) $$;

CREATE FUNCTION snowflake_registry.margin(f snowflake_registry.fleet) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.span_of(interval '10 minutes', f.low_bits, f.tick_us) $$;

-- The longest lease plus two margins. No grant can extend further.
CREATE FUNCTION snowflake_registry.far(f snowflake_registry.fleet) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.span_of(interval '24 hours 20 minutes', f.low_bits, f.tick_us) $$;

-- The longest lease of a spare worker ID, plus two margins.
CREATE FUNCTION snowflake_registry.near(f snowflake_registry.fleet) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_registry.span_of(interval '1 hour 20 minutes', f.low_bits, f.tick_us) $$;

-- A point plus two margins.
CREATE FUNCTION snowflake_registry.two_margins_above(f snowflake_registry.fleet, point bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT snowflake_registry.sum_of(snowflake_registry.sum_of(point, snowflake_registry.margin(f)), snowflake_registry.margin(f))
$$;

-- The lowest start above a point. The start is 0 if nothing was granted or lost.
CREATE FUNCTION snowflake_registry.start_above(f snowflake_registry.fleet, point bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT CASE WHEN point = 0 THEN 0 ELSE snowflake_registry.sum_of(point, snowflake_registry.margin(f)) END $$;

-- How the worker IDs of a datacenter are divided. The ring is 0 .. spare - 1. The common part of the spare worker IDs is spare ..
-- sliced - 1. The remaining worker IDs form "slices" slices of equal size.
CREATE TYPE snowflake_registry.division AS (
    spare bigint,
    sliced bigint,
    slices bigint,
    total bigint
);

-- The last quarter of the worker IDs is spare, and half of that quarter is divided into slices. If there are fewer than 8 worker
-- IDs, none are spare.
CREATE FUNCTION snowflake_registry.division_of(worker_bits integer) RETURNS snowflake_registry.division
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT n.total - n.spare, n.total - n.spare / 2, least(n.spare / 2, 32), n.total
    FROM (SELECT 1::bigint << worker_bits AS total, CASE WHEN worker_bits < 3 THEN 0 ELSE 1::bigint << worker_bits - 2 END AS spare) AS n
$$;

-- The number of IDs in a worker ID's lease. The lease of a spare worker ID is short so that its quarantine is short.
CREATE FUNCTION snowflake_registry.lease_span(f snowflake_registry.fleet, worker bigint, lease interval) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT snowflake_registry.span_of(f,
        CASE WHEN worker >= (snowflake_registry.division_of(f.worker_bits)).spare THEN least(lease, interval '1 hour') ELSE lease END)
$$;

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
