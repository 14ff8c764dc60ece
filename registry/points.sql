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
