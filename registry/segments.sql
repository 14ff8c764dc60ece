-- Segments: blocks of a tag's numbers. crates/flake/src/fleet/registry_model/tag.rs explains why each rule is needed.

CREATE FUNCTION snowflake_registry.check_tag(tag text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM snowflake_registry.check_argument('tag', octet_length(check_tag.tag) BETWEEN 1 AND 200, 'Pass a tag of 1 to 200 bytes.');
END
$$;

CREATE FUNCTION snowflake_registry.check_array(name text, items anyarray, length integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM snowflake_registry.check_argument(name, CASE WHEN coalesce(array_ndims(items), 1) > 1 OR length > 10000 THEN false
        ELSE cardinality(items) = length AND array_position(items, NULL) IS NULL END,
        'Pass three arrays of the same length, of at most 10000 elements, without NULLs.');
END
$$;

-- Locks the row of the fleet, and begins a new life if the registry has moved to a different place. If the call is for a different
-- fleet, nothing is locked or changed. Unless "tag_changes" is true or a life begins, the row is locked FOR SHARE.
CREATE FUNCTION snowflake_registry.enter(fleet uuid, tag_changes boolean) RETURNS snowflake_registry.fleet
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    i snowflake_registry.identity := snowflake_registry.identity_now();
    f snowflake_registry.fleet := snowflake_registry.read_fleet();
    exclusive boolean := tag_changes OR snowflake_registry.moved(f, i);
BEGIN
    IF enter.fleet <> f.fleet_id THEN
        RETURN f;
    END IF;
    f := snowflake_registry.lock_fleet(exclusive);
    IF snowflake_registry.moved(f, i) THEN
        IF NOT exclusive THEN
            RAISE EXCEPTION USING ERRCODE = 'serialization_failure', MESSAGE = 'the registry changed during the call',
                HINT = 'Retry the request.';
        END IF;
        f := snowflake_registry.begin_life(f, i, NULL, clock_timestamp());
    END IF;
    RETURN f;
END
$$;

-- Locks the row of a tag. Returns false if another session holds the lock for too long, because the server's other tags must not
-- wait for it.
CREATE FUNCTION snowflake_registry.lock_segment(tag text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '250ms'
AS $$
BEGIN
    PERFORM FROM snowflake_registry.segment AS t WHERE t.tag = lock_segment.tag FOR UPDATE;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    PERFORM snowflake_registry.end_sessions(snowflake_registry.lock_holders('10 s'));
    RETURN false;
END
$$;

-- Returns an answer to a server's request with the fields that every answer contains. The answer is a refusal if the request is for
-- a different fleet.
CREATE FUNCTION snowflake_registry.block_answer(f snowflake_registry.fleet, fleet uuid, tag text) RETURNS snowflake_registry.block
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    b snowflake_registry.block;
BEGIN
    b.fleet := f.fleet_id;
    b.life := f.life;
    b.tag := block_answer.tag;
    b.now := clock_timestamp();
    IF block_answer.fleet <> f.fleet_id THEN
        b.answer := 'refused';
        b.reason := 'foreign fleet';
    END IF;
    RETURN b;
END
$$;

-- The number of numbers that a tag skips before its next block, because lives have begun since its last block was taken.
CREATE FUNCTION snowflake_registry.pending_skip(s snowflake_registry.segment) RETURNS numeric
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(sum(k.windows), 0) * 64 * s.max_step FROM snowflake_registry.skip AS k WHERE k.life > s.life
$$;

-- Applies the skips to a record, so that its next number is at least "least_next". Records and logs the hole. The caller stores the
-- record.
CREATE FUNCTION snowflake_registry.apply_skip(
    f snowflake_registry.fleet, s snowflake_registry.segment, least_next bigint, now_at timestamptz
) RETURNS snowflake_registry.segment
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    first bigint := s.next_value;
BEGIN
    s.next_value := greatest(least(first + snowflake_registry.pending_skip(s), 9223372036854775807), least_next)::bigint;
    s.life := f.life;
    IF s.next_value > first THEN
        INSERT INTO snowflake_registry.hole (tag, generation, first, last, life, skipped_at)
        VALUES (s.tag, s.generation, first, s.next_value - 1, f.life, now_at);
        RAISE LOG USING MESSAGE = format('tag "%s" skips the numbers from %s to %s', s.tag, first, s.next_value - 1),
            DETAIL = format('The registry might have forgotten blocks with these numbers. Life %s: %s.', f.life, f.life_reason);
    END IF;
    RETURN s;
END
$$;

CREATE FUNCTION snowflake_registry.take(fleet uuid, tag text, nonce uuid, want bigint) RETURNS snowflake_registry.block
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    f snowflake_registry.fleet;
    s snowflake_registry.segment;
    b snowflake_registry.block;
    margin constant interval := '10 minutes';
    free bigint;
    began timestamptz;
    used bigint;
    skipped numeric;
BEGIN
    PERFORM snowflake_registry.check_argument('fleet', take.fleet IS NOT NULL OR NULL, 'Pass the fleet that hello() returned.');
    PERFORM snowflake_registry.check_tag(take.tag);
    PERFORM snowflake_registry.check_argument('nonce', take.nonce IS NOT NULL OR NULL, 'Pass a new UUID for each block.');
    PERFORM snowflake_registry.check_argument('want', take.want > 0, 'Pass the desired length of the block.');
    f := snowflake_registry.enter(take.fleet, false);
    b := snowflake_registry.block_answer(f, take.fleet, take.tag);
    IF b.answer IS NOT NULL THEN
        RETURN b;
    END IF;
    b.answer := 'refused';
    IF NOT snowflake_registry.lock_segment(take.tag) THEN
        b.reason := 'locked';
        RETURN b;
    END IF;
    SELECT * INTO s FROM snowflake_registry.segment AS t WHERE t.tag = take.tag;
    b.now := clock_timestamp();
    IF s.tag IS NULL THEN
        b.reason := 'unknown tag';
        RETURN b;
    END IF;
    b.generation := s.generation;
    b.step := s.step;
    b.max_step := s.max_step;

    -- A server repeats its request if it has not received the answer. It then receives the same answer.
    IF s.top_nonce = take.nonce THEN
        b.answer := 'taken';
        b.nonce := take.nonce;
        b.first := s.top_first;
        b.count := s.next_value - s.top_first;
        RETURN b;
    END IF;

    skipped := snowflake_registry.pending_skip(s);
    free := greatest(9223372036854775807 - s.next_value - skipped, 0)::bigint;
    IF free = 0 THEN
        b.reason := 'exhausted';
        RETURN b;
    END IF;
    -- If the clock was far ahead when the window began, the tag does not wait until the clock reaches that time again.
    IF b.now >= s.window_start + margin OR b.now + margin < s.window_start THEN
        began := b.now;
        used := 0;
    ELSE
        began := s.window_start;
        used := s.window_used;
    END IF;
    IF used >= 64 * s.max_step THEN
        b.reason := 'wait';
        b.until := began + margin;
        RETURN b;
    END IF;
    b.count := least(greatest(s.step, least(take.want, s.max_step)), 64 * s.max_step - used, free);

    b.answer := 'taken';
    b.nonce := take.nonce;
    -- If numbers are skipped, the new block does not directly follow the previous one.
    s.below_nonce := CASE WHEN skipped = 0 THEN s.top_nonce END;
    s.below_first := CASE WHEN skipped = 0 THEN s.top_first END;
    s := snowflake_registry.apply_skip(f, s, 0, b.now);
    b.first := s.next_value;
    UPDATE snowflake_registry.segment AS t SET next_value = b.first + b.count, top_nonce = take.nonce, top_first = b.first,
        below_nonce = s.below_nonce, below_first = s.below_first, life = f.life, window_start = began,
        window_used = used + b.count, updated_at = b.now
    WHERE t.tag = take.tag;
    RETURN b;
END
$$;

CREATE FUNCTION snowflake_registry.give_back(fleet uuid, tag text, generation bigint, nonce uuid, first bigint, last bigint)
RETURNS snowflake_registry.block
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    f snowflake_registry.fleet;
    s snowflake_registry.segment;
    b snowflake_registry.block;
    whole boolean;
    taken constant text := 'Pass the value that take() returned.';
BEGIN
    PERFORM snowflake_registry.check_argument('fleet', give_back.fleet IS NOT NULL OR NULL, 'Pass the fleet that hello() returned.');
    PERFORM snowflake_registry.check_tag(give_back.tag);
    PERFORM snowflake_registry.check_argument('generation', give_back.generation > 0, taken);
    PERFORM snowflake_registry.check_argument('nonce', give_back.nonce IS NOT NULL OR NULL, taken);
    PERFORM snowflake_registry.check_argument('first', give_back.first >= 0, taken);
    PERFORM snowflake_registry.check_argument('last', give_back.last BETWEEN give_back.first AND 9223372036854775806, taken);
    f := snowflake_registry.enter(give_back.fleet, false);
    b := snowflake_registry.block_answer(f, give_back.fleet, give_back.tag);
    IF b.answer IS NOT NULL THEN
        RETURN b;
    END IF;
    b.answer := 'refused';
    IF NOT snowflake_registry.lock_segment(give_back.tag) THEN
        b.reason := 'locked';
        RETURN b;
    END IF;
    SELECT * INTO s FROM snowflake_registry.segment AS t WHERE t.tag = give_back.tag;
    b.now := clock_timestamp();
    IF s.tag IS NULL THEN
        b.reason := 'unknown tag';
        RETURN b;
    END IF;
    b.generation := s.generation;
    IF s.generation <> give_back.generation THEN
        b.reason := 'generation';
        RETURN b;
    END IF;
    -- A skip that has not been applied yet starts at next_value, so next_value must not be lowered.
    IF s.top_nonce <> give_back.nonce OR give_back.last <> s.next_value - 1 OR give_back.first < s.top_first
        OR snowflake_registry.pending_skip(s) > 0
    THEN
        b.reason := 'not the top';
        RETURN b;
    END IF;
    -- Replace the nonce. A different server can then take the same numbers, and a repetition of this request must not return them
    -- again.
    whole := give_back.first = s.top_first AND s.below_nonce IS NOT NULL;
    UPDATE snowflake_registry.segment AS t SET next_value = give_back.first,
        top_nonce = CASE WHEN whole THEN s.below_nonce ELSE gen_random_uuid() END,
        top_first = CASE WHEN whole THEN s.below_first ELSE give_back.first END,
        below_nonce = NULL, below_first = NULL, updated_at = b.now,
        -- The highest number of a window is limited, and not how often a server takes a block.
        window_used = greatest(s.window_used - (give_back.last - give_back.first + 1), 0)
    WHERE t.tag = give_back.tag;
    b.answer := 'given back';
    b.first := give_back.first;
    b.count := give_back.last - give_back.first + 1;
    RETURN b;
END
$$;

-- Processes a server's report of the last number of its highest block of each tag. Usually, nothing is locked or written.
CREATE FUNCTION snowflake_registry.report(fleet uuid, tags text[], generations bigint[], lasts bigint[])
RETURNS SETOF snowflake_registry.block
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    i snowflake_registry.identity;
    f snowflake_registry.fleet;
    s snowflake_registry.segment;
    b snowflake_registry.block;
    common snowflake_registry.block;
    lost numeric;
    r record;
BEGIN
    PERFORM snowflake_registry.check_argument('fleet', report.fleet IS NOT NULL OR NULL, 'Pass the fleet that hello() returned.');
    PERFORM snowflake_registry.check_array('tags', report.tags, cardinality(report.tags)),
        snowflake_registry.check_array('generations', report.generations, cardinality(report.tags)),
        snowflake_registry.check_array('lasts', report.lasts, cardinality(report.tags));
    i := snowflake_registry.identity_now();
    f := snowflake_registry.read_fleet();
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.enter(report.fleet, false);
    END IF;
    common := snowflake_registry.block_answer(f, report.fleet, NULL);
    IF common.answer IS NOT NULL THEN
        RETURN NEXT common;
        RETURN;
    END IF;
    -- Process the tags in a fixed order, so that two servers that need to lock rows do not deadlock.
    FOR r IN
        SELECT u.tag, u.generation, u.last, t.generation AS known, t.next_value
        FROM unnest(report.tags, report.generations, report.lasts) AS u (tag, generation, last)
            LEFT JOIN snowflake_registry.segment AS t ON t.tag = u.tag
        ORDER BY u.tag COLLATE "C", u.generation, u.last
    LOOP
        b := common;
        b.tag := r.tag;
        b.generation := r.generation;
        b.answer := 'current';
        IF r.known IS NOT NULL AND r.known = r.generation AND r.last >= r.next_value THEN
            f := snowflake_registry.enter(report.fleet, false);
            b.life := f.life;
            SELECT * INTO s FROM snowflake_registry.segment AS t WHERE t.tag = r.tag FOR UPDATE;
            r.known := s.generation;
            IF r.known = r.generation AND r.last >= s.next_value THEN
                -- The losses of all lives count, even if open() has cancelled their skips.
                SELECT coalesce(sum(k.lost), 0) * 64 * s.max_step INTO lost FROM snowflake_registry.skip AS k;
                IF r.last < least(s.next_value + snowflake_registry.pending_skip(s) + lost, 9223372036854775807) THEN
                    s := snowflake_registry.apply_skip(f, s, r.last + 1, b.now);
                    UPDATE snowflake_registry.segment AS t SET next_value = s.next_value, top_nonce = gen_random_uuid(),
                        top_first = s.next_value, below_nonce = NULL, below_first = NULL, life = s.life, updated_at = b.now
                    WHERE t.tag = r.tag;
                    b.answer := 'raised';
                ELSE
                    RAISE LOG USING MESSAGE = format('a server has a block of tag "%s" that ends at %s', r.tag, r.last),
                        DETAIL = format('The registry cannot have assigned this block, because the next number is %s.', s.next_value);
                    b.answer := 'refused';
                    b.reason := 'ahead';
                END IF;
            END IF;
        END IF;
        IF r.known IS NULL THEN
            b.answer := 'refused';
            b.reason := 'unknown tag';
        ELSIF r.known <> r.generation THEN
            b.answer := 'refused';
            b.reason := 'generation';
        END IF;
        RETURN NEXT b;
    END LOOP;
END
$$;
