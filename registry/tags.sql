-- The tags of segments. crates/flake/src/fleet/registry_model/tag.rs explains why each rule is needed.

-- Stores a new tag. The caller holds the lock FOR UPDATE on the row of the fleet. The skips of all lives after "life" apply to the
-- tag.
CREATE FUNCTION snowflake_registry.insert_segment(
    f snowflake_registry.fleet, tag text, start bigint, step bigint, max_step bigint, life bigint, now_at timestamptz,
    begins_at timestamptz, description text
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    nonce uuid := gen_random_uuid();
    -- The clock and 20 random bits make the generation different from that of a tag whose creation was lost.
    next_generation bigint := greatest(f.generation, floor(extract(epoch FROM now_at) * 1000000)::bigint) + 1
        + ('x' || right(nonce::text, 5))::bit(20)::integer;
BEGIN
    UPDATE snowflake_registry.fleet SET generation = next_generation;
    PERFORM snowflake_registry.mark_fleet();
    INSERT INTO snowflake_registry.segment (tag, generation, next_value, step, max_step, top_nonce, top_first, life, window_start,
        window_used, updated_at, begins_at, description)
    VALUES (insert_segment.tag, next_generation, insert_segment.start, insert_segment.step, insert_segment.max_step, nonce,
        insert_segment.start, insert_segment.life, now_at, 0, now_at, insert_segment.begins_at, insert_segment.description);
    RETURN next_generation;
END
$$;

CREATE FUNCTION snowflake_registry.check_sizes(start bigint, step bigint, max_step bigint) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    most constant bigint := 1000000000;
BEGIN
    PERFORM snowflake_registry.check_argument('start', start BETWEEN 0 AND 9223372036854775806,
        'Pass the first number, from 0 to 9223372036854775806.');
    PERFORM snowflake_registry.check_argument('step', step BETWEEN 1 AND most,
        'Pass the smallest size of a block, from 1 to 1000000000.');
    PERFORM snowflake_registry.check_argument('max_step', max_step BETWEEN step AND most,
        'Pass the largest size of a block, from "step" to 1000000000.');
END
$$;

-- The tags of a series' periods start with this word.
CREATE FUNCTION snowflake_registry.is_of_series(tag text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT starts_with(tag, 'series ') $$;

CREATE FUNCTION snowflake_registry.check_begins_at(tag text, begins_at timestamptz) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM snowflake_registry.check_argument('tag', snowflake_registry.is_of_series(tag),
        'Only a tag that begins with "series " has a period.');
    PERFORM snowflake_registry.check_argument('begins_at', begins_at >= '0001-01-01 00:00:00+00' AND begins_at < '10000-01-01 00:00:00+00',
        'Pass the time at which the period of the series begins.');
END
$$;

-- Creates the tag of a series' period if it does not exist. A server calls this function when it first needs a number of the
-- period.
CREATE FUNCTION snowflake_registry.begin_segment(
    fleet uuid, tag text, begins_at timestamptz, start bigint, step bigint, max_step bigint
) RETURNS snowflake_registry.block
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    f snowflake_registry.fleet;
    b snowflake_registry.block;
    -- The tag is created no earlier than one margin before the period, because it may have been lost in a later life whose clock is
    -- one margin behind.
    margin constant interval := '10 minutes';
BEGIN
    PERFORM snowflake_registry.check_argument('fleet', begin_segment.fleet IS NOT NULL OR NULL,
        'Pass the fleet that hello() returned.');
    PERFORM snowflake_registry.check_tag(begin_segment.tag);
    PERFORM snowflake_registry.check_begins_at(begin_segment.tag, begin_segment.begins_at);
    PERFORM snowflake_registry.check_sizes(begin_segment.start, begin_segment.step, begin_segment.max_step);
    f := snowflake_registry.read_fleet();
    -- Heartbeats wait for the lock, so a request that cannot create a tag does not take it.
    IF clock_timestamp() + margin >= begin_segment.begins_at THEN
        f := snowflake_registry.enter(begin_segment.fleet, true);
    END IF;
    b := snowflake_registry.block_answer(f, begin_segment.fleet, begin_segment.tag);
    IF b.answer IS NOT NULL THEN
        RETURN b;
    END IF;
    SELECT s.generation INTO b.generation FROM snowflake_registry.segment AS s WHERE s.tag = begin_segment.tag;
    IF FOUND THEN
        b.answer := 'current';
    ELSIF b.now + margin < begin_segment.begins_at THEN
        b.answer := 'refused';
        b.reason := 'not begun';
        b.until := begin_segment.begins_at;
    ELSIF f.floor > 0 AND begin_segment.begins_at - 2 * margin < snowflake_registry.time_of(f, f.floor) THEN
        -- The lost registry may have assigned numbers of this period.
        b.answer := 'refused';
        b.reason := 'unknown tag';
    ELSE
        b.answer := 'created';
        b.generation := snowflake_registry.insert_segment(f, begin_segment.tag, begin_segment.start, begin_segment.step,
            begin_segment.max_step, coalesce((SELECT min(k.life) - 1 FROM snowflake_registry.skip AS k
                WHERE k.since >= begin_segment.begins_at - 2 * margin), f.life),
            b.now, begin_segment.begins_at, NULL);
    END IF;
    RETURN b;
END
$$;

CREATE FUNCTION snowflake_registry.create_segment(
    tag text, start bigint DEFAULT 1, step bigint DEFAULT 1000, max_step bigint DEFAULT NULL, description text DEFAULT NULL,
    begins_at timestamptz DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    f snowflake_registry.fleet;
BEGIN
    PERFORM snowflake_registry.check_tag(create_segment.tag);
    IF snowflake_registry.is_of_series(create_segment.tag) OR create_segment.begins_at IS NOT NULL THEN
        PERFORM snowflake_registry.check_begins_at(create_segment.tag, create_segment.begins_at);
        PERFORM snowflake_registry.check_argument('begins_at', create_segment.begins_at <= clock_timestamp() + interval '10 minutes',
            'Create the tag of a period after the period has begun. Otherwise, a server would create the tag again if the '
            'registry lost it before then.');
    END IF;
    max_step := coalesce(create_segment.max_step, least(create_segment.step * 100, 1000000000));
    PERFORM snowflake_registry.check_sizes(create_segment.start, create_segment.step, create_segment.max_step);
    PERFORM snowflake_registry.check_argument('description', description IS NULL OR length(description) <= 1000,
        'Pass at most 1000 characters.');
    f := snowflake_registry.read_fleet();
    f := snowflake_registry.enter(f.fleet_id, true);
    IF EXISTS (SELECT FROM snowflake_registry.segment AS s WHERE s.tag = create_segment.tag) THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_object', MESSAGE = format('tag "%s" already exists', create_segment.tag),
            HINT = 'To see it, run "SELECT * FROM snowflake_registry.segments". To start with a different number, drop it first.';
    END IF;
    RETURN snowflake_registry.insert_segment(f, create_segment.tag, create_segment.start, create_segment.step,
        create_segment.max_step, f.life, clock_timestamp(), create_segment.begins_at, create_segment.description);
END
$$;

-- Removes a tag and returns its last record. Locks the row of the fleet FOR UPDATE.
CREATE FUNCTION snowflake_registry.remove_segment(tag text) RETURNS snowflake_registry.segment
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    f snowflake_registry.fleet := snowflake_registry.read_fleet();
    s snowflake_registry.segment;
BEGIN
    PERFORM snowflake_registry.check_tag(remove_segment.tag), snowflake_registry.enter(f.fleet_id, true);
    DELETE FROM snowflake_registry.segment AS t WHERE t.tag = remove_segment.tag RETURNING * INTO s;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('tag "%s" does not exist', remove_segment.tag),
            HINT = 'To see the tags, run "SELECT * FROM snowflake_registry.segments".';
    END IF;
    RETURN s;
END
$$;

-- If "start" is omitted, the numbers continue. An owner who passes a lower number must make sure that neither this number nor a
-- higher one is in use.
CREATE FUNCTION snowflake_registry.recreate_segment(
    tag text, start bigint DEFAULT NULL, step bigint DEFAULT NULL, max_step bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    s snowflake_registry.segment := snowflake_registry.remove_segment(recreate_segment.tag);
    f snowflake_registry.fleet := snowflake_registry.read_fleet();
BEGIN
    start := coalesce(recreate_segment.start, least(s.next_value + snowflake_registry.pending_skip(s), 9223372036854775806)::bigint);
    s.step := coalesce(recreate_segment.step, least(s.step, recreate_segment.max_step));
    s.max_step := coalesce(recreate_segment.max_step, greatest(s.max_step, s.step));
    PERFORM snowflake_registry.check_sizes(recreate_segment.start, s.step, s.max_step);
    RETURN snowflake_registry.insert_segment(f, recreate_segment.tag, recreate_segment.start, s.step, s.max_step, f.life,
        clock_timestamp(), s.begins_at, s.description);
END
$$;

CREATE FUNCTION snowflake_registry.drop_segment(tag text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    s snowflake_registry.segment := snowflake_registry.remove_segment(drop_segment.tag);
BEGIN
    IF s.begins_at IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('tag "%s" belongs to a series', drop_segment.tag),
            DETAIL = 'A server would re-create the tag when it needs a number for the period, and would issue the same numbers again.',
            HINT = 'Keep the tag, which occupies one row. To continue with a different number, call snowflake_registry.recreate_segment().';
    END IF;
END
$$;
