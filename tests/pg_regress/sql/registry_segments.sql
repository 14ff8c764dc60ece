CREATE EXTENSION snowflake_registry;
SET TIME ZONE 'UTC';
SET DateStyle = 'ISO';
-- Tags, and arguments that are refused and then change nothing.
\set VERBOSITY terse
SELECT snowflake_registry.create_segment('orders');
SELECT * FROM snowflake_registry.take(gen_random_uuid(), 'orders', gen_random_uuid(), 1);
SELECT snowflake_registry.create_fleet('41:10:12') AS fleet \gset
\set nonce '\'00000000-0000-0000-0000-000000000001\''
\set other '\'00000000-0000-0000-0000-000000000002\''
SELECT snowflake_registry.create_segment('orders') > 0 AS created;
SELECT snowflake_registry.create_segment('invoices', 0, 10, 100, 'numbers of invoices') > 0 AS created;
SELECT snowflake_registry.create_segment('no blocks of different sizes', 5, 1, 1) > 0 AS created;
SELECT snowflake_registry.create_segment('Zürich', start => 9223372036854775806, step => 1000000000) > 0 AS created;
SELECT tag, next_value, skip, step, max_step, description FROM snowflake_registry.segments ORDER BY tag COLLATE "C";
SELECT md5(array_agg(s ORDER BY tag)::text) AS before FROM snowflake_registry.segment AS s \gset
SELECT snowflake_registry.create_segment('orders');
SELECT snowflake_registry.create_segment(NULL);
SELECT snowflake_registry.create_segment('');
SELECT snowflake_registry.create_segment(repeat('ü', 101));
SELECT snowflake_registry.create_segment('a', NULL);
SELECT snowflake_registry.create_segment('a', -1);
SELECT snowflake_registry.create_segment('a', 9223372036854775807);
SELECT snowflake_registry.create_segment('a', 1, NULL);
SELECT snowflake_registry.create_segment('a', 1, 0);
SELECT snowflake_registry.create_segment('a', 1, 1000000001);
SELECT snowflake_registry.create_segment('a', 1, 10, 9);
SELECT snowflake_registry.create_segment('a', 1, 10, 1000000001);
SELECT snowflake_registry.create_segment('a', description => repeat('x', 1001));
SELECT snowflake_registry.drop_segment(NULL);
\set VERBOSITY default
\set SHOW_CONTEXT never
SELECT snowflake_registry.create_segment('a', 1, 10, 9);
SELECT snowflake_registry.create_segment('orders');
SELECT snowflake_registry.drop_segment('a');
\set VERBOSITY terse
SELECT * FROM snowflake_registry.take(NULL, 'orders', :nonce, 1);
SELECT * FROM snowflake_registry.take(:'fleet', NULL, :nonce, 1);
SELECT * FROM snowflake_registry.take(:'fleet', '', :nonce, 1);
SELECT * FROM snowflake_registry.take(:'fleet', repeat('x', 10000000), :nonce, 1);
SELECT * FROM snowflake_registry.take(:'fleet', 'orders', NULL, 1);
SELECT * FROM snowflake_registry.take(:'fleet', 'orders', :nonce, NULL);
SELECT * FROM snowflake_registry.take(:'fleet', 'orders', :nonce, 0);
SELECT * FROM snowflake_registry.take(:'fleet', 'orders', :nonce, -9223372036854775808);
SELECT answer, reason, fleet = :'fleet' AS fleet, tag FROM snowflake_registry.take(gen_random_uuid(), 'orders', :nonce, 1);
SELECT answer, reason, fleet = :'fleet' AS fleet, tag FROM snowflake_registry.take(:'fleet', 'Orders', :nonce, 1);
SELECT md5(array_agg(s ORDER BY tag)::text) = :'before' AS unchanged FROM snowflake_registry.segment AS s;
-- Blocks.
SELECT answer, first, count, step, max_step FROM snowflake_registry.take(:'fleet', 'invoices', :nonce, 1);
SELECT answer, first, count, nonce FROM snowflake_registry.take(:'fleet', 'invoices', :nonce, 9223372036854775807);
SELECT answer, first, count, generation FROM snowflake_registry.take(:'fleet', 'invoices', :other, 9223372036854775807) \gset
SELECT :'answer' AS answer, :first AS first, :count AS count;
SELECT answer, reason, first, count FROM snowflake_registry.take(:'fleet', 'Zürich', :nonce, 5);
SELECT answer, reason, first, count FROM snowflake_registry.take(:'fleet', 'Zürich', :other, 5);
-- Arguments of give_back() that are refused, the ones that do not fit the block, and then the right ones.
SELECT * FROM snowflake_registry.give_back(NULL, 'invoices', :generation, :other, 50, 109);
SELECT * FROM snowflake_registry.give_back(:'fleet', NULL, :generation, :other, 50, 109);
SELECT * FROM snowflake_registry.give_back(:'fleet', 'invoices', NULL, :other, 50, 109);
SELECT * FROM snowflake_registry.give_back(:'fleet', 'invoices', 0, :other, 50, 109);
SELECT * FROM snowflake_registry.give_back(:'fleet', 'invoices', :generation, NULL, 50, 109);
SELECT * FROM snowflake_registry.give_back(:'fleet', 'invoices', :generation, :other, NULL, 109);
SELECT * FROM snowflake_registry.give_back(:'fleet', 'invoices', :generation, :other, -1, 109);
SELECT * FROM snowflake_registry.give_back(:'fleet', 'invoices', :generation, :other, 50, NULL);
SELECT * FROM snowflake_registry.give_back(:'fleet', 'invoices', :generation, :other, 50, 49);
SELECT * FROM snowflake_registry.give_back(:'fleet', 'invoices', :generation, :other, 50, 9223372036854775807);
SELECT answer, reason FROM (VALUES ('invoice', 0, :other, 50, 109), ('invoices', 1, :other, 50, 109), ('invoices', 0, :nonce, 50, 109),
    ('invoices', 0, :other, 50, 108), ('invoices', 0, :other, 9, 109), ('invoices', 0, :other, 50, 110)) AS
        a (tag, more, nonce, first, last),
    LATERAL snowflake_registry.give_back(:'fleet', a.tag, :generation + a.more, a.nonce::uuid, a.first, a.last);
SELECT answer, reason FROM snowflake_registry.give_back(gen_random_uuid(), 'invoices', :generation, :other, 50, 109);
SELECT answer, reason, first, count FROM snowflake_registry.give_back(:'fleet', 'invoices', :generation, :other, 50, 109);
SELECT answer, reason, first, count FROM snowflake_registry.give_back(:'fleet', 'invoices', :generation, :other, 50, 109);
SELECT next_value FROM snowflake_registry.segments WHERE tag = 'invoices';
-- Reports.
SELECT * FROM snowflake_registry.report(NULL, '{}', '{}', '{}');
SELECT * FROM snowflake_registry.report(:'fleet', NULL, '{}', '{}');
SELECT * FROM snowflake_registry.report(:'fleet', '{}', NULL, '{}');
SELECT * FROM snowflake_registry.report(:'fleet', '{}', '{}', NULL);
SELECT * FROM snowflake_registry.report(:'fleet', '{orders,NULL}', '{1,1}', '{1,1}');
SELECT * FROM snowflake_registry.report(:'fleet', '{orders}', '{NULL}', '{1}');
SELECT * FROM snowflake_registry.report(:'fleet', '{orders}', '{1}', '{1,2}');
SELECT * FROM snowflake_registry.report(:'fleet', '{{orders},{invoices}}', '{1,1}', '{1,1}');
SELECT * FROM snowflake_registry.report(:'fleet', array_fill('x'::text, '{10001}'), array_fill(1::bigint, '{10001}'),
    array_fill(1::bigint, '{10001}'));
SELECT * FROM snowflake_registry.report(:'fleet', '{}', '{}', '{}');
SELECT answer, reason, tag FROM snowflake_registry.report(gen_random_uuid(), '{orders,invoices}', '{1,1}', '{1,1}');
SELECT answer, reason, tag, generation = :generation AS same FROM snowflake_registry.report(:'fleet',
    '{orders,invoices,invoices,nothing}', ARRAY[1, :generation, :generation, 1], '{1,49,50,9223372036854775807}');
SELECT next_value, skip FROM snowflake_registry.segments WHERE tag = 'invoices';
-- A tag that is dropped is gone, and the next one has a higher generation.
SELECT snowflake_registry.drop_segment('invoices');
SELECT snowflake_registry.create_segment('invoices', 0, 10, 100) > :generation AS higher;
TABLE snowflake_registry.holes;
-- The tags of periods: arguments that are refused, one that has not begun, and one that is created once.
SELECT * FROM snowflake_registry.begin_segment(NULL, 'series day', '2026-01-01', 1, 10, 100);
SELECT * FROM snowflake_registry.begin_segment(:'fleet', NULL, '2026-01-01', 1, 10, 100);
SELECT * FROM snowflake_registry.begin_segment(:'fleet', 'series day', NULL, 1, 10, 100);
SELECT * FROM snowflake_registry.begin_segment(:'fleet', 'series day', 'infinity', 1, 10, 100);
SELECT * FROM snowflake_registry.begin_segment(:'fleet', 'series day', '-infinity', 1, 10, 100);
SELECT * FROM snowflake_registry.begin_segment(:'fleet', 'series day', '2026-01-01', -1, 10, 100);
SELECT * FROM snowflake_registry.begin_segment(:'fleet', 'series day', '2026-01-01', 1, 0, 100);
SELECT * FROM snowflake_registry.begin_segment(:'fleet', 'series day', '2026-01-01', 1, 10, 9);
SELECT answer, reason, fleet = :'fleet' AS fleet
    FROM snowflake_registry.begin_segment(gen_random_uuid(), 'series day', '2026-01-01', 1, 10, 100);
SELECT answer, reason, until FROM snowflake_registry.begin_segment(:'fleet', 'series day', '9999-12-31', 1, 10, 100);
SELECT answer, generation > 0 AS generation FROM snowflake_registry.begin_segment(:'fleet', 'series day', '2026-01-01', 7, 10, 100);
SELECT answer, generation > 0 AS generation FROM snowflake_registry.begin_segment(:'fleet', 'series day', '2026-01-01', 7, 10, 100);
SELECT tag, next_value, skip, step, max_step, begins_at FROM snowflake_registry.segments WHERE begins_at IS NOT NULL;
SELECT answer, first, count FROM snowflake_registry.take(:'fleet', 'series day', gen_random_uuid(), 5);
SELECT snowflake_registry.drop_segment('series day');
SELECT * FROM snowflake_registry.begin_segment(:'fleet', 'day', '2026-01-01', 1, 10, 100);
SELECT snowflake_registry.create_segment('series other');
SELECT snowflake_registry.create_segment('other', begins_at => '2026-01-01');
SELECT snowflake_registry.create_segment('series other', begins_at => '9999-01-01');
SELECT snowflake_registry.create_segment('series other', begins_at => '2026-01-01') > 0 AS created;
-- A tag that begins again.
SELECT snowflake_registry.recreate_segment('series day', 3) > 0 AS created;
SELECT snowflake_registry.recreate_segment('series other', 3, 5) > 0 AS created;
SELECT snowflake_registry.recreate_segment('orders', 3, max_step => 10) > 0 AS created;
SELECT tag, next_value, step, max_step, begins_at FROM snowflake_registry.segments WHERE next_value = 3 ORDER BY tag;
SELECT snowflake_registry.recreate_segment('nothing', 3);
SELECT snowflake_registry.recreate_segment('orders', -1);
SELECT snowflake_registry.recreate_segment('orders', step => 1) > 0 AS created;
SELECT next_value, step, max_step FROM snowflake_registry.segments WHERE tag = 'orders';
SELECT snowflake_registry.recreate_segment('orders', 3, 5, 4);
DROP EXTENSION snowflake_registry;
