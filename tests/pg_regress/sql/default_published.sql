-- IDs that other systems have published, and the time that stands beside each there. crates/flake/tests/published.rs says where.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SELECT layout, id, published, created_at - published AS off, datacenter_id, worker_id, sequence
  FROM (VALUES
           ('twitter', 1541815603606036480, timestamptz '2022-06-28 16:07:40.105Z'),
           ('twitter', 1050118621198921728, '2018-10-10 20:19:24Z'),
           ('discord', 175928847299117063, '2016-04-30 11:18:25.796Z'),
           ('instagram', 733194846952938437, '2014-06-01 11:54:18Z'),
           ('instagram', 3870172288071432645, '2026-04-07 16:48:30.621Z'),
           ('mastodon', 103270115826048975, '2019-12-08 03:48:33.901Z'),
           ('sonyflake', x'045eec4a4600041b'::bigint, '2020-08-12 17:35:29.98Z'),
           ('leaf', 1169786042799259000, '2019-09-06 01:35:00.834Z')
       ) AS v (layout, id, published),
       LATERAL snowflake_decode(id, layout);
-- Of systems whose examples have other bits than their source.
SELECT bits, id, published, created_at - published AS off, worker_id, sequence
  FROM (VALUES
           ('29:21:13@1s', timestamptz '2016-09-20 00:00:00+08', 180363646902239241, timestamptz '2017-01-19 12:15:46+08'),
           ('41:12s:10', '2023-01-01Z', 136169504773242881, '2024-01-11 13:08:59.845-05')
       ) AS v (bits, epoch, id, published),
       LATERAL snowflake_decode(id, bits, epoch);
-- And back, from the parts.
SELECT layout, snowflake_encode(created_at, coalesce(worker_id, 0), sequence, coalesce(datacenter_id, 0), layout) = id AS same
  FROM (VALUES ('twitter', 1541815603606036480), ('discord', 175928847299117063), ('instagram', 3870172288071432645),
               ('mastodon', 103270115826048975), ('sonyflake', x'045eec4a4600041b'::bigint),
               ('leaf', 1169786042799259000)) AS v (layout, id),
       LATERAL snowflake_decode(id, layout);

-- A field of no bits is none, whichever it is.
SELECT layout, snowflake_decode(4214787, layout)
  FROM unnest(ARRAY['41:10:12', '41:0:10:12', '41:5:5:12', '41:5:0:12', '41:0:12', '41:0:0:12']) AS layout;
SELECT snowflake_encode('2024-01-01Z', 0, 0, 1, '41:0:10:12');
\echo :SQLSTATE
