-- Checks of the arguments of requests, and the refusals of the registry.

-- Limits what a server reports about itself to 16 keys with scalar values, and truncates the values.
CREATE FUNCTION snowflake_registry.clean_about(about jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF about IS NULL OR jsonb_typeof(about) <> 'object' THEN
        RETURN '{}';
    END IF;
    RETURN (
        SELECT coalesce(jsonb_object_agg(left(k.key, 63), left(k.value #>> '{}', 1024)), '{}')
        FROM (
            SELECT e.key, e.value FROM jsonb_each(about) AS e
            WHERE jsonb_typeof(e.value) IN ('string', 'number', 'boolean')
            ORDER BY e.key COLLATE "C" LIMIT 16
        ) AS k
    );
END
$$;

-- The integer value of a key, or NULL if the value is not an integer or is too large.
CREATE FUNCTION snowflake_registry.about_number(about jsonb, key text) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT CASE WHEN about ->> key ~ '^-?[0-9]{1,15}$' THEN (about ->> key)::bigint END $$;

-- The part of an answer that describes the holder of a row.
CREATE FUNCTION snowflake_registry.other_of(n snowflake_registry.node) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT jsonb_build_object(
        'host', n.about ->> 'host',
        'port', snowflake_registry.about_number(n.about, 'port'),
        'data_directory', n.about ->> 'data_directory',
        'since', n.since,
        'seen', n.seen
    )
$$;

CREATE FUNCTION snowflake_registry.check_argument(name text, valid boolean, hint text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF valid IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = format('argument "%s" must not be null', name),
            HINT = hint;
    ELSIF NOT valid THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('argument "%s" is out of range', name),
            HINT = hint;
    END IF;
END
$$;

-- Checks the arguments that claim() and renew() have in common.
CREATE FUNCTION snowflake_registry.check_arguments(
    fleet uuid, layout text, epoch bigint, datacenter integer, holder uuid, life bigint, nonce uuid, clock bigint, lease interval,
    about jsonb
) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    any_value constant text := 'Only servers with snowflake_pg call this function.';
    positive constant text := 'Pass a value that hello() or claim() returned.';
BEGIN
    PERFORM snowflake_registry.check_argument('fleet', fleet IS NOT NULL OR NULL, positive);
    PERFORM snowflake_registry.check_argument('layout', length(layout) <= 100, any_value);
    PERFORM snowflake_registry.check_argument('epoch', epoch >= 0, any_value);
    PERFORM snowflake_registry.check_argument('datacenter', datacenter >= 0, any_value);
    PERFORM snowflake_registry.check_argument('holder', holder IS NOT NULL OR NULL, any_value);
    PERFORM snowflake_registry.check_argument('life', life BETWEEN 1 AND 1000000000000, positive);
    PERFORM snowflake_registry.check_argument('nonce', nonce IS NOT NULL OR NULL, positive);
    PERFORM snowflake_registry.check_argument('clock', clock >= 0, 'Pass the first ID of the current tick.');
    PERFORM snowflake_registry.check_argument('lease', lease IS NOT NULL OR NULL, any_value);
    PERFORM snowflake_registry.check_argument('about', about IS NULL OR pg_column_size(about) <= 65536, 'Pass at most 64 kB.');
END
$$;

-- Returns the refusal, if every request must be refused. Otherwise, returns an answer whose first column is NULL.
CREATE FUNCTION snowflake_registry.refusal(
    f snowflake_registry.fleet, fleet uuid, layout text, epoch bigint, now_at timestamptz
) RETURNS snowflake_registry.answer
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    a snowflake_registry.answer;
BEGIN
    a.fleet := f.fleet_id;
    a.life := f.life;
    a.now := now_at;
    IF refusal.fleet <> f.fleet_id THEN
        a.reason := 'foreign fleet';
    ELSIF (refusal.layout, refusal.epoch) IS DISTINCT FROM (f.layout, f.epoch) THEN
        a.reason := 'layout';
        a.other := jsonb_build_object('layout', f.layout, 'epoch', f.epoch);
    END IF;
    IF a.reason IS NOT NULL THEN
        a.answer := 'refused';
    END IF;
    RETURN a;
END
$$;

CREATE FUNCTION snowflake_registry.lease_valid(lease interval) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT lease BETWEEN interval '10 minutes' AND interval '24 hours' $$;

-- Copies the record of a holder from "node" to "history" before a different holder replaces it.
CREATE FUNCTION snowflake_registry.end_tenure(
    f snowflake_registry.fleet, n snowflake_registry.node, now_at timestamptz, ended_by text
) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO snowflake_registry.history
        (datacenter_id, worker_id, holder, life, start, bound, since, seen, granted_until, ended, ended_by, about)
    VALUES (n.datacenter_id, n.worker_id, n.holder, n.life, n.start, n.bound, n.since, n.seen,
        snowflake_registry.time_of(f, n.bound), now_at, ended_by, n.about)
$$;
