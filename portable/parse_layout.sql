-- Functions for layouts and epochs.

-- The number of milliseconds from 1970 to an epoch. Raises an error if the epoch is not valid.
CREATE OR REPLACE FUNCTION snowflake_portable_epoch(epoch timestamptz)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1
    RETURN CASE
        WHEN NOT floor(extract(epoch FROM epoch AT TIME ZONE 'UTC') * 1000) BETWEEN 0 AND 7258118399999
            THEN snowflake_portable_not_an_epoch(epoch, 'An epoch must be between 1970-01-01 and 2199-12-31.')
        WHEN extract(epoch FROM epoch AT TIME ZONE 'UTC') * 1000 % 1 <> 0
            THEN snowflake_portable_not_an_epoch(epoch, 'An epoch must not include a fraction of a millisecond.')
        ELSE (extract(epoch FROM epoch AT TIME ZONE 'UTC') * 1000)::bigint
    END;

-- The format of a layout. If "epoch_ms" is -1, the layout's own epoch is used. The function is in PL/pgSQL, which caches the plans
-- of its statements, so that a function that reads the layout for each row is fast.
CREATE OR REPLACE FUNCTION snowflake_portable_format(layout text, epoch_ms bigint DEFAULT -1)
    RETURNS snowflake_portable_format LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    -- pg_catalog, followed by the schema in which this script runs.
    SET search_path FROM CURRENT
AS $$
DECLARE
    malformed constant text :=
        'A layout is specified as three or four field widths in bits, or as a name from view "snowflake_layouts".';
    bits text COLLATE "C" := lower(btrim(layout, E' \t\n\x0b\f\r') COLLATE "C");
    -- Twitter's epoch, which a layout without a name uses.
    epoch bigint := 1288834974657;
    tick bigint := 1;
    fields text[];
    problem text;
    -- The widths of the timestamp, datacenter, worker and sequence fields. Before they are checked, they can be any numbers.
    t numeric;
    d numeric;
    w numeric;
    s numeric;
    sequence_second boolean;
BEGIN
    CASE bits
        WHEN 'twitter' THEN bits := '41:10:12';
        WHEN 'discord' THEN bits := '41:5:5:12'; epoch := 1420070400000;
        WHEN 'instagram' THEN bits := '40:13:10'; epoch := 1314220021721;
        WHEN 'mastodon' THEN bits := '47:0:16'; epoch := 0;
        WHEN 'sonyflake' THEN bits := '39:8s:16@10ms'; epoch := 1409529600000;
        WHEN 'uid-generator' THEN bits := '28:22:13@1s'; epoch := 1463673600000;
        WHEN 'pgedge' THEN bits := '41:10:12'; epoch := 1672531200000;
        WHEN 'leaf' THEN bits := '41:10:12';
        ELSE
    END CASE;
    IF epoch_ms <> -1 THEN
        epoch := epoch_ms;
    END IF;
    IF strpos(bits, '@') > 0 THEN
        tick := CASE substr(bits, strpos(bits, '@') + 1) WHEN '1ms' THEN 1 WHEN '10ms' THEN 10 WHEN '1s' THEN 1000 END;
    END IF;
    fields := regexp_match(split_part(bits, '@', 1), '^([0-9]+):([0-9]+)(s?):([0-9]+)(?::([0-9]+))?$');
    IF octet_length(layout) > 100 THEN
        problem := malformed;
    ELSIF tick IS NULL THEN
        problem := 'The tick after "@" must be "1ms", "10ms" or "1s".';
    ELSIF fields IS NULL THEN
        problem := malformed;
    ELSE
        sequence_second := fields[3] = 's';
        t := fields[1];
        s := CASE WHEN sequence_second THEN fields[2] ELSE coalesce(fields[5], fields[4]) END;
        IF fields[5] IS NULL THEN
            w := CASE WHEN sequence_second THEN fields[4] ELSE fields[2] END;
        ELSE
            d := CASE WHEN sequence_second THEN fields[4] ELSE fields[2] END;
            w := CASE WHEN sequence_second THEN fields[5] ELSE fields[4] END;
        END IF;
        problem := CASE
            WHEN t NOT BETWEEN 1 AND 62 THEN 'The timestamp field must be 1 to 62 bits wide.'
            WHEN d > 31 THEN 'The datacenter field must be 0 to 31 bits wide.'
            WHEN w > 31 THEN 'The worker field must be 0 to 31 bits wide.'
            WHEN s NOT BETWEEN 1 AND 31 THEN 'The sequence field must be 1 to 31 bits wide.'
            WHEN t + coalesce(d, 0) + w + s > 63 THEN
                format('The widths add up to %s bits, but an ID can have at most 63.', t + coalesce(d, 0) + w + s)
        END;
    END IF;
    IF problem IS NOT NULL THEN
        RETURN snowflake_portable_not_a_layout(layout, problem);
    END IF;
    bits := concat_ws(':', t, CASE WHEN sequence_second THEN s || 's' END, d, w, CASE WHEN NOT sequence_second THEN s END)
        || CASE tick WHEN 1 THEN '' WHEN 10 THEN '@10ms' ELSE '@1s' END;
    d := coalesce(d, 0);
    RETURN ROW(
        bits,
        timestamp '1970-01-01'
            + make_interval(days => (epoch / 86400000)::integer, secs => (epoch % 86400000)::double precision / 1000),
        epoch,
        tick,
        -- A shift by 63 bits would overflow.
        ((1::bigint << (t + d + w + s - 1)::integer) - 1) * 2 + 1,
        (1::bigint << t::integer) - 1,
        -- The last millisecond of the year 294276, relative to the epoch.
        (9224318015999999 - epoch) / tick,
        (d + w + s)::integer,
        (w + CASE WHEN sequence_second THEN 0 ELSE s END)::integer,
        (1::bigint << d::integer) - 1,
        CASE WHEN sequence_second THEN 0 ELSE s END::integer,
        (1::bigint << w::integer) - 1,
        CASE WHEN sequence_second THEN d + w ELSE 0 END::integer,
        (1::bigint << s::integer) - 1
    );
END
$$;

-- The format of this database's IDs, from the parameters that are set while the script runs. The format is part of the function
-- body, so that no session can change what an ID means. The function is not IMMUTABLE, so that a session uses the new format after
-- a change.
DO $own$
DECLARE
    layout text := coalesce(nullif(btrim(current_setting('snowflake_pg.layout', true)), ''), '41:10:12');
    epoch text := btrim(coalesce(current_setting('snowflake_pg.epoch', true), ''));
    epoch_ms bigint := -1;
    day constant text := '[0-9]{4}-[0-9]{2}-[0-9]{2}';
    time_of_day constant text := '([01][0-9]|2[0-3]):[0-5][0-9](:([0-5][0-9]|60)([.][0-9]+)?)?';
    zone constant text := '(Z|[+-][0-9]{2}(:?[0-9]{2})?)';
    format snowflake_portable_format;
    problem text;
BEGIN
    BEGIN
        IF epoch ~ '^-?[0-9]+$' THEN
            IF epoch::numeric BETWEEN 0 AND 7258118399999 THEN
                epoch_ms := epoch;
            ELSE
                problem := 'An epoch must be between 1970-01-01 and 2199-12-31.';
            END IF;
        ELSIF epoch ~* ('^' || day || '([T ]' || time_of_day || ')?[[:space:]]*' || zone || '$') THEN
            -- PostgreSQL reads a leap second as the following second. The extension reads it as the preceding second.
            IF epoch ~ '^.{13}:[0-9]{2}:60' THEN
                epoch := overlay(epoch PLACING '59' FROM 18);
            END IF;
            epoch_ms := snowflake_portable_epoch(epoch::timestamptz);
        ELSIF epoch <> '' THEN
            problem := 'The value is neither an ISO 8601 time with a time zone nor a number of milliseconds.';
        END IF;
    EXCEPTION
        WHEN invalid_parameter_value THEN
            GET STACKED DIAGNOSTICS problem = PG_EXCEPTION_DETAIL;
        WHEN datetime_field_overflow OR invalid_datetime_format OR invalid_time_zone_displacement_value THEN
            problem := 'The time does not exist.';
    END;
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = pg_catalog.format('invalid value for parameter "snowflake_pg.epoch": "%s"', epoch),
            DETAIL = problem,
            HINT = 'Specify a time with "Z" or a UTC offset, for example "2010-11-04T01:42:54.657Z", or the number of milliseconds since '
                '1970-01-01 00:00:00 UTC, from 0 to 7258118399999.';
    END IF;
    BEGIN
        format := snowflake_portable_format(layout, epoch_ms);
    EXCEPTION WHEN invalid_parameter_value THEN
        GET STACKED DIAGNOSTICS problem = PG_EXCEPTION_DETAIL;
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = pg_catalog.format('invalid value for parameter "snowflake_pg.layout": "%s"', layout),
            DETAIL = problem,
            HINT = 'Specify the layout of the server that issues the IDs, either as a name from view "snowflake_layouts" or as field '
                'widths in bits, for example "41:10:12".';
    END;
    EXECUTE pg_catalog.format(
        'CREATE OR REPLACE FUNCTION snowflake_portable_own() RETURNS snowflake_portable_format LANGUAGE sql STABLE PARALLEL SAFE
            RETURN %L::snowflake_portable_format', format);
END
$own$;
