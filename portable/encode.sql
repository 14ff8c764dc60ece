-- Functions that return IDs for an instant: the ID with given parts, and the first and last ID of the tick.

-- The number of ticks from the epoch to an instant, including fractions. The result is infinite for an infinite instant. The
-- seconds are added separately, because PostgreSQL rounds extract(epoch ..) to four decimal places in the last 30 years of
-- timestamptz.
CREATE OR REPLACE FUNCTION snowflake_portable_ticks(at timestamptz, format snowflake_portable_format)
    RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1
    RETURN ((extract(epoch FROM date_trunc('minute', at AT TIME ZONE 'UTC'))
            + coalesce(extract(second FROM at AT TIME ZONE 'UTC'), 0)) * 1000
        - (format).epoch_ms) / (format).tick_ms;

CREATE OR REPLACE FUNCTION snowflake_portable_not_a_time(at timestamptz, format snowflake_portable_format)
    RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 1
    RETURN snowflake_portable_raise(
        '22023',
        format('time %s is outside the range of layout "%s"', snowflake_portable_utc(at), (format).layout),
        format(
            'IDs with this layout and epoch represent times from %s up to, but not including, %s.',
            snowflake_portable_utc((format).epoch AT TIME ZONE 'UTC'),
            CASE
                WHEN (format).last_tick < (format).last_dated_tick
                    THEN snowflake_portable_utc(snowflake_portable_time((format).last_tick + 1, format))
                ELSE 'infinity'
            END
        ),
        'Pass a time in that range. Only snowflake_between(), snowflake_first_id_from() and snowflake_last_id_before() accept times '
            || 'outside that range.',
        NULL::bigint
    );

-- Raises the error for a part that does not fit its field. Negative parts are reported first.
CREATE OR REPLACE FUNCTION snowflake_portable_not_a_part(
        created_at timestamptz, datacenter_id integer, worker_id integer, sequence integer, format snowflake_portable_format)
    RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 1
BEGIN ATOMIC
    SELECT snowflake_portable_raise(
        '22023',
        format('%s %s is out of range', part, value),
        CASE max
            WHEN 0 THEN format('Layout "%s" has no %s field.', (format).layout, field)
            ELSE format('The %s field of layout "%s" can hold a number from 0 to %s.', field, (format).layout, max)
        END,
        CASE max WHEN 0 THEN 'Pass 0.' ELSE 'Pass a number in that range.' END,
        NULL::bigint
    )
    FROM (
        SELECT part, field, value, max
        FROM (VALUES
            (1, 'datacenter ID', 'datacenter', datacenter_id, (format).datacenter_max),
            (2, 'worker ID', 'worker', worker_id, (format).worker_max),
            (3, 'sequence number', 'sequence', sequence, (format).sequence_max)
        ) AS parts (n, part, field, value, max)
        WHERE value < 0 OR value > max
        ORDER BY value >= 0, n
        LIMIT 1
    ) AS first;
END;

CREATE OR REPLACE FUNCTION snowflake_portable_min_id(at timestamptz, format snowflake_portable_format)
    RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE
        WHEN snowflake_portable_ticks(at, format) < 0 OR snowflake_portable_ticks(at, format) >= (format).last_tick + 1::numeric
            THEN snowflake_portable_not_a_time(at, format)
        ELSE floor(snowflake_portable_ticks(at, format))::bigint << (format).tick_shift
    END;

CREATE OR REPLACE FUNCTION snowflake_portable_encode(
        created_at timestamptz, worker_id integer, sequence integer, datacenter_id integer, format snowflake_portable_format)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1
    RETURN CASE
        WHEN datacenter_id < 0 OR datacenter_id > (format).datacenter_max OR worker_id < 0 OR worker_id > (format).worker_max
            OR sequence < 0 OR sequence > (format).sequence_max
            THEN snowflake_portable_not_a_part(created_at, datacenter_id, worker_id, sequence, format)
        WHEN datacenter_id IS NULL OR worker_id IS NULL OR sequence IS NULL THEN NULL
        ELSE snowflake_portable_min_id(created_at, format)
            | (datacenter_id::bigint << (format).datacenter_shift)
            | (worker_id::bigint << (format).worker_shift)
            | (sequence::bigint << (format).sequence_shift)
    END;

CREATE OR REPLACE FUNCTION snowflake_encode(
        created_at timestamptz, worker_id integer, sequence integer, datacenter_id integer DEFAULT 0)
    RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN snowflake_portable_encode(created_at, worker_id, sequence, datacenter_id, snowflake_portable_own());

CREATE OR REPLACE FUNCTION snowflake_encode(created_at timestamptz, worker_id integer, sequence integer, layout text)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN snowflake_portable_encode(created_at, worker_id, sequence, 0, snowflake_portable_format(layout));

CREATE OR REPLACE FUNCTION snowflake_encode(
        created_at timestamptz, worker_id integer, sequence integer, layout text, epoch timestamptz)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN snowflake_portable_encode(
        created_at, worker_id, sequence, 0, snowflake_portable_format(layout, snowflake_portable_epoch(epoch)));

CREATE OR REPLACE FUNCTION snowflake_encode(
        created_at timestamptz, worker_id integer, sequence integer, datacenter_id integer, layout text)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN snowflake_portable_encode(created_at, worker_id, sequence, datacenter_id, snowflake_portable_format(layout));

CREATE OR REPLACE FUNCTION snowflake_encode(
        created_at timestamptz, worker_id integer, sequence integer, datacenter_id integer, layout text, epoch timestamptz)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN snowflake_portable_encode(
        created_at, worker_id, sequence, datacenter_id, snowflake_portable_format(layout, snowflake_portable_epoch(epoch)));

CREATE OR REPLACE FUNCTION snowflake_min_id(at timestamptz)
    RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN snowflake_portable_min_id(at, snowflake_portable_own());

CREATE OR REPLACE FUNCTION snowflake_min_id(at timestamptz, layout text)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN snowflake_portable_min_id(at, snowflake_portable_format(layout));

CREATE OR REPLACE FUNCTION snowflake_min_id(at timestamptz, layout text, epoch timestamptz)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN snowflake_portable_min_id(at, snowflake_portable_format(layout, snowflake_portable_epoch(epoch)));

CREATE OR REPLACE FUNCTION snowflake_portable_max_id(at timestamptz, format snowflake_portable_format)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1
    RETURN snowflake_portable_min_id(at, format) | ((1::bigint << (format).tick_shift) - 1);

CREATE OR REPLACE FUNCTION snowflake_max_id(at timestamptz)
    RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN snowflake_portable_max_id(at, snowflake_portable_own());

CREATE OR REPLACE FUNCTION snowflake_max_id(at timestamptz, layout text)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN snowflake_portable_max_id(at, snowflake_portable_format(layout));

CREATE OR REPLACE FUNCTION snowflake_max_id(at timestamptz, layout text, epoch timestamptz)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN snowflake_portable_max_id(at, snowflake_portable_format(layout, snowflake_portable_epoch(epoch)));
