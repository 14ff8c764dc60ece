CREATE EXTENSION snowflake_registry;
SET TIME ZONE 'UTC';
SET DateStyle = 'ISO';
-- The rules of the protocol. Bounds are set back by UPDATE where a test would otherwise have to wait.
SET TIME ZONE 'UTC';
\set VERBOSITY default
\set SHOW_CONTEXT never
SELECT snowflake_registry.create_fleet('41:4:12', '2020-01-01Z') IS NOT NULL AS created;
CREATE SCHEMA test;
-- A point some minutes from now.
CREATE FUNCTION test.point(minutes integer) RETURNS bigint LANGUAGE sql AS
    $$ SELECT snowflake_registry.point_of(f, clock_timestamp() + minutes * interval '1 min') FROM snowflake_registry.fleet AS f $$;
CREATE FUNCTION test.minutes(point bigint) RETURNS integer LANGUAGE sql AS
    $$ SELECT round(extract(epoch FROM snowflake_registry.time_of(f, point) - clock_timestamp()) / 60)
       FROM snowflake_registry.fleet AS f WHERE point > 0 $$;
CREATE TYPE test.seen AS (answer text, reason text, worker integer, life bigint, count bigint, start_min integer, bound_min integer,
    until_min integer);
CREATE FUNCTION test.shown(a snowflake_registry.answer) RETURNS test.seen LANGUAGE sql AS
    $$ SELECT a.answer, a.reason, a.worker, a.life, a.count, test.minutes(a.start), test.minutes(a.bound),
        round(extract(epoch FROM a.until - a.now) / 60)::integer $$;
CREATE FUNCTION test.claim(who text, clock_min integer DEFAULT 0, lease interval DEFAULT '12 h', nonce text DEFAULT NULL) RETURNS test.seen
LANGUAGE sql AS $$
    SELECT test.shown(snowflake_registry.claim(f.fleet_id, f.layout, f.epoch, 0, md5(who)::uuid, h.life,
        coalesce(md5(claim.nonce)::uuid, h.nonce), test.point(clock_min), lease, jsonb_build_object('host', who)))
    FROM snowflake_registry.fleet AS f, snowflake_registry.hello(f.fleet_id, f.layout, f.epoch) AS h $$;
-- Renews with what the row says, except where an argument says otherwise.
CREATE FUNCTION test.renew(number integer, who text DEFAULT NULL, add_count integer DEFAULT 0, life bigint DEFAULT NULL,
    nonce text DEFAULT NULL, start_min integer DEFAULT NULL, bound_min integer DEFAULT NULL, clock_min integer DEFAULT 0,
    next text DEFAULT NULL) RETURNS test.seen
LANGUAGE sql AS $$
    SELECT test.shown(snowflake_registry.renew(f.fleet_id, f.layout, f.epoch, 0, number,
        coalesce(md5(who)::uuid, n.holder), coalesce(n.count, 1) + add_count, coalesce(renew.life, n.life),
        coalesce(md5(renew.nonce)::uuid, n.nonce, gen_random_uuid()), coalesce(md5(next)::uuid, gen_random_uuid()),
        coalesce(test.point(start_min), n.start, 0), coalesce(test.point(bound_min), n.bound), test.point(clock_min), '12 h',
        jsonb_build_object('host', coalesce(who, n.about ->> 'host'))))
    FROM snowflake_registry.fleet AS f LEFT JOIN snowflake_registry.node AS n ON n.worker_id = number $$;
-- Pretends that the registry was promoted, or restored.
CREATE FUNCTION test.promoted(steps integer DEFAULT 1, system integer DEFAULT 0) RETURNS void LANGUAGE sql AS
    $$ UPDATE snowflake_registry.fleet SET timeline = timeline - steps, system_identifier = system_identifier - system;
       SELECT snowflake_registry.mark_fleet() $$;
CREATE VIEW test.fleet AS SELECT life, split_part(life_reason, ' ', 1) AS why, test.minutes(quarantine_until) AS until_min,
    test.minutes(quarantine_before) AS before_min, test.minutes(spare_until) AS spare_min, settled, spare_closed
    FROM snowflake_registry.fleet;

-- Rule 2: ring order, the same nonce again, a start behind both clocks, no live holder displaced.
SELECT * FROM test.claim('a');
SELECT * FROM test.claim('b', nonce => 'b1');
SELECT * FROM test.claim('b', nonce => 'b1');
SELECT answer, reason FROM test.claim('late', clock_min => -100000000);
SELECT * FROM test.claim('short', lease => '5 min');
SELECT count(*) FROM snowflake_registry.node;
SELECT c.answer, c.worker FROM generate_series(2, 11) AS i, LATERAL test.claim(i::text) AS c;
SELECT * FROM test.claim('x');
-- A clock of the year 2099 gets no more than others do.
SELECT * FROM test.renew(1, clock_min => 38000000);
UPDATE snowflake_registry.node SET bound = test.point(-15) WHERE worker_id IN (3, 5);
UPDATE snowflake_registry.node SET bound = test.point(-5) WHERE worker_id = 4;
SELECT * FROM test.claim('behind', clock_min => -30);
SELECT * FROM test.claim('x');
SELECT * FROM test.claim('y');
SELECT * FROM test.claim('z');
SELECT host, ended IS NULL AS has_it, ended_by FROM snowflake_registry.handovers WHERE worker_id = 5 ORDER BY since;

-- Rule 3: renewed, the same renewal again, lost, conflict.
SELECT * FROM test.renew(0);
SELECT * FROM test.renew(0, next => 'n1');
SELECT * FROM test.renew(0, nonce => 'old', next => 'n1');
SELECT * FROM test.renew(0, nonce => 'of the clone');
SELECT * FROM test.renew(5, who => '5');
UPDATE snowflake_registry.node SET bound = test.point(-9) WHERE worker_id = 6;
SELECT * FROM test.renew(6);
UPDATE snowflake_registry.node SET bound = test.point(-11) WHERE worker_id = 7;
SELECT * FROM test.renew(7);
-- A bound, a count and a start that nobody can have: the holder of the nonce is renewed all the same, everybody else is refused.
SELECT * FROM test.renew(1, bound_min => 3000, add_count => 100000000);
SELECT * FROM test.renew(1, nonce => 'forged', bound_min => 3000);
SELECT * FROM test.renew(1, nonce => 'forged', start_min => 20, bound_min => 60);
SELECT * FROM test.renew(1, nonce => 'forged', add_count => 2000000000);

-- Rule 4: a promotion. Every holder goes on, the ring is closed, the spare slice is open.
SELECT test.promoted();
SELECT * FROM test.renew(0);
SELECT * FROM test.fleet;
SELECT spare_open FROM snowflake_registry.status;
SELECT * FROM test.claim('s');
SELECT * FROM test.claim('s2');
SELECT * FROM test.claim('s3');
-- The second one within the quarantine closes the common spare worker IDs, and opens the slice of its timeline.
SELECT test.promoted();
SELECT * FROM test.claim('s3');
SELECT * FROM test.fleet;
SELECT snowflake_registry.open(), snowflake_registry.open();
SELECT * FROM test.fleet;
-- A timeline that is not exactly one up, and another cluster.
SELECT test.promoted(2);
SELECT * FROM test.renew(0);
SELECT * FROM test.fleet;
SELECT snowflake_registry.open();
SELECT test.promoted(system => 1);
SELECT * FROM test.renew(0);
SELECT * FROM test.fleet;
SELECT snowflake_registry.open();
-- A renewal knows more than the registry: a higher count, an absent row, a higher life.
SELECT * FROM test.renew(0, nonce => 'lost', add_count => 5);
SELECT * FROM test.fleet;
SELECT snowflake_registry.open();
SELECT * FROM test.renew(13, who => 'k', life => (SELECT life FROM snowflake_registry.fleet), bound_min => 60);
DELETE FROM snowflake_registry.node WHERE worker_id = 13;
SELECT * FROM test.renew(13, who => 'k', life => (SELECT life FROM snowflake_registry.fleet), bound_min => 60);
SELECT * FROM test.fleet;
SELECT * FROM test.renew(0, life => 100);
SELECT * FROM test.fleet;
SELECT snowflake_registry.open();
-- The owner knows that something was lost.
SELECT abs(extract(epoch FROM snowflake_registry.close() - now() - interval '24 hours 30 minutes')) < 60 AS until;
SELECT * FROM test.fleet;
SELECT life_reason LIKE 'close() was called by %' AS reason, spare_open FROM snowflake_registry.status;
SELECT * FROM test.claim('s4');
SELECT snowflake_registry.open();

-- Rule 5: a renewal is taken over a row of an earlier life, by order in ID space.
UPDATE snowflake_registry.node SET bound = test.point(-30), life = 1 WHERE worker_id = 8;
SELECT * FROM test.renew(8, who => 'other', life => 1, start_min => -25, bound_min => 60);
SELECT * FROM test.renew(8, who => 'other', life => 1, start_min => -19, bound_min => 60);
SELECT host, ended IS NULL AS has_it, ended_by FROM snowflake_registry.handovers WHERE worker_id = 8 ORDER BY since;
UPDATE snowflake_registry.node SET bound = test.point(30), life = 1, count = 5 WHERE worker_id = 9;
SELECT * FROM test.renew(9, nonce => 'lost', add_count => -1);
SELECT * FROM test.renew(9, nonce => 'lost');
-- The first renewal in a life has no margin.
UPDATE snowflake_registry.node SET bound = test.point(-1), life = 1 WHERE worker_id = 9;
SELECT * FROM test.renew(9);

-- Rule 7: a change of the layout.
SELECT max(bound) AS top FROM snowflake_registry.node \gset
SELECT life FROM snowflake_registry.fleet \gset old_
SELECT snowflake_registry.change_layout('41:4:12', '2020-01-01Z');
\set VERBOSITY terse
SELECT snowflake_registry.change_layout('41:4:12', '2021-01-01Z');
SELECT round(extract(epoch FROM snowflake_registry.change_layout('41:2:3:12', '2020-01-01Z') - now()) / 60) > 0 AS later;
SELECT floor > :top AS above, life - :old_life AS lives FROM snowflake_registry.fleet;
SELECT count(*) FROM snowflake_registry.node;
SELECT ended_by, count(*) FROM snowflake_registry.history GROUP BY ended_by ORDER BY ended_by;
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS test CASCADE;
DROP EXTENSION snowflake_registry;
