CREATE EXTENSION snowflake_registry;
SET TIME ZONE 'UTC';
SET DateStyle = 'ISO';
-- Arguments that are refused, and that then change nothing.
\set VERBOSITY terse
CREATE SCHEMA test;
SELECT * FROM snowflake_registry.hello(NULL, '41:10:12', 1288834974657);
SELECT snowflake_registry.create_fleet('twitter');
SELECT snowflake_registry.create_fleet('0:10:12');
SELECT snowflake_registry.create_fleet('41:32:1');
SELECT snowflake_registry.create_fleet('41:10:13');
SELECT snowflake_registry.create_fleet(NULL);
SELECT snowflake_registry.create_fleet('41:10:12', 'infinity');
SELECT snowflake_registry.create_fleet('41:10:12', '1969-12-31Z');
SELECT snowflake_registry.create_fleet('41:10:12', NULL, 'infinity');
SELECT l, p.*
FROM unnest(ARRAY[' 041:10:12', '41:0:10:12', '41:5:5:12', '39:8S:16@10ms', '41:12s:5:5', '28:22:13@1S', '47:0:16@1ms', '62:0:1']) AS l,
    snowflake_registry.parse_layout(l) AS p;
SELECT snowflake_registry.create_fleet('41:10:12') IS NOT NULL AS created;
SELECT snowflake_registry.create_fleet(' 41:10:12@1ms ') IS NOT NULL AS created;
SELECT snowflake_registry.create_fleet('41:5:5:12');
SELECT snowflake_registry.grant_server(NULL);
SELECT snowflake_registry.grant_server('public');
-- A request whose arguments are valid, except those that are given as SQL. If there is an error, the answer is its SQLSTATE.
CREATE FUNCTION test.claim(name text DEFAULT '', value text DEFAULT '') RETURNS TABLE (answer text, reason text)
LANGUAGE plpgsql AS $$
DECLARE
    names text[] := '{fleet, layout, epoch, datacenter, holder, life, nonce, clock, lease, about}';
    given text[] := ARRAY['f.fleet_id', 'f.layout', 'f.epoch', '0', quote_literal(md5('a')::uuid), 'f.life', 'gen_random_uuid()',
        'snowflake_registry.point_of(f, clock_timestamp())', '''12 h''', '''{}'''];
BEGIN
    given[coalesce(array_position(names, name), 0)] := value;
    RETURN QUERY EXECUTE 'SELECT c.answer, c.reason FROM snowflake_registry.fleet AS f, snowflake_registry.claim('
        || array_to_string(given[1:10], ', ') || ') AS c';
EXCEPTION WHEN OTHERS THEN
    RETURN QUERY SELECT SQLSTATE, SQLERRM;
END
$$;
CREATE FUNCTION test.renew(name text DEFAULT '', value text DEFAULT '') RETURNS TABLE (answer text, reason text)
LANGUAGE plpgsql AS $$
DECLARE
    names text[] := '{fleet, layout, epoch, datacenter, worker, holder, count, life, nonce, next_nonce, start, bound, clock, lease, about}';
    given text[] := ARRAY['f.fleet_id', 'f.layout', 'f.epoch', '0', '0', 'n.holder', 'n.count', 'n.life', 'n.nonce', 'gen_random_uuid()',
        'n.start', 'n.bound', 'snowflake_registry.point_of(f, clock_timestamp())', '''12 h''', '''{}'''];
BEGIN
    given[coalesce(array_position(names, name), 0)] := value;
    RETURN QUERY EXECUTE 'SELECT c.answer, c.reason FROM snowflake_registry.fleet AS f, (SELECT * FROM snowflake_registry.node '
        || 'WHERE worker_id = 0) AS n, snowflake_registry.renew(' || array_to_string(given[1:15], ', ') || ') AS c';
EXCEPTION WHEN OTHERS THEN
    RETURN QUERY SELECT SQLSTATE, SQLERRM;
END
$$;
CREATE FUNCTION test.state() RETURNS text LANGUAGE sql AS $$
    SELECT md5(concat((SELECT f FROM snowflake_registry.fleet AS f), (SELECT array_agg(n) FROM snowflake_registry.node AS n),
        (SELECT array_agg(r) FROM snowflake_registry.ring AS r), (SELECT count(*) FROM snowflake_registry.history))) $$;
-- What is too long is cut.
SELECT * FROM test.claim('about',
    $$ jsonb_build_object('host', repeat('x', 50000), 'port', 1e300, repeat('k', 99), 'v', 'deep', '[1]'::json) $$);
SELECT length(about ->> 'host') AS host, length(about ->> repeat('k', 63)) AS key, about ? 'deep' AS deep FROM snowflake_registry.node;
SELECT port FROM snowflake_registry.servers;
SELECT test.state() AS before \gset
SELECT * FROM snowflake_registry.hello(NULL, NULL, 1);
SELECT * FROM snowflake_registry.hello(NULL, repeat('x', 10000000), 1);
SELECT * FROM snowflake_registry.hello(NULL, '41:10:12', -1);
SELECT answer, reason, other FROM snowflake_registry.hello(NULL, '41:10:12', 1);
SELECT name, c.* FROM unnest('{fleet, layout, epoch, datacenter, holder, life, nonce, clock, lease}'::text[]) AS name,
    LATERAL test.claim(name, 'NULL') AS c;
SELECT a.*, c.* FROM (VALUES ('fleet', 'gen_random_uuid()'), ('layout', '''41:5:5:12'''), ('epoch', '0'), ('datacenter', '-1'),
    ('datacenter', '1'), ('datacenter', '2147483647'), ('life', '0'), ('life', '9223372036854775807'), ('life', '2'), ('clock', '-1'),
    ('clock', '0'), ('lease', '''9 min'''), ('lease', '''1 year'''), ('lease', '''-1 h'''), ('lease', '''178000000 years'''),
    ('about', 'jsonb_build_object(''host'', repeat(''x'', 10000000))')) AS a (name, value), LATERAL test.claim(name, value) AS c;
SELECT name, c.* FROM unnest('{fleet, layout, epoch, datacenter, worker, holder, count, life, nonce, next_nonce, start, bound, clock,
    lease}'::text[]) AS name, LATERAL test.renew(name, 'NULL') AS c;
SELECT a.*, c.* FROM (VALUES ('fleet', 'gen_random_uuid()'), ('worker', '-1'), ('worker', '1024'), ('count', '0'),
    ('life', '9223372036854775807'), ('start', '-1'), ('start', 'n.bound + 1'), ('bound', '-1'), ('clock', '-1'), ('lease', '''1 year'''),
    ('about', 'jsonb_build_object(''host'', repeat(''x'', 10000000))')) AS a (name, value), LATERAL test.renew(name, value) AS c;
SELECT test.state() = :'before' AS unchanged;
-- Not refused: a clock of the year 2099, which is cut, and anything else than an object.
SELECT * FROM test.claim('clock', '9223372036854775807');
SELECT * FROM test.claim('about', '''[1, 2]''');
SELECT * FROM test.claim('about', 'NULL');
SELECT worker_id, state, granted_until < now() + interval '11 min' AS short FROM snowflake_registry.servers ORDER BY worker_id;

-- Privileges and comments of all objects.
SELECT count(*) FROM pg_proc
WHERE pronamespace = 'snowflake_registry'::regnamespace AND (proacl IS NULL OR proacl::text ~ '[{,]=');
SELECT proname, proconfig FROM pg_proc WHERE pronamespace = 'snowflake_registry'::regnamespace AND prosecdef ORDER BY proname;
SELECT proname FROM pg_proc
WHERE pronamespace = 'snowflake_registry'::regnamespace AND NOT coalesce(proconfig::text LIKE '%search_path=pg_catalog, pg_temp%', false);
SELECT relname FROM pg_class
WHERE relnamespace = 'snowflake_registry'::regnamespace AND relkind IN ('r', 'v') AND obj_description(oid, 'pg_class') IS NULL;
SELECT proname FROM pg_proc WHERE pronamespace = 'snowflake_registry'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL;

-- The commit is durable even if the caller does not ask for this, and the transaction cannot stay open.
BEGIN;
SET LOCAL synchronous_commit = off;
SELECT * FROM test.renew();
SHOW synchronous_commit;
SHOW idle_in_transaction_session_timeout;
ROLLBACK;
BEGIN;
SET LOCAL synchronous_commit = remote_apply;
SET LOCAL idle_in_transaction_session_timeout = '2s';
SELECT * FROM test.claim();
SHOW synchronous_commit;
SHOW idle_in_transaction_session_timeout;
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS test CASCADE;
DROP EXTENSION snowflake_registry;
