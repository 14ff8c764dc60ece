-- The named layouts. snowflake_portable_format() contains their bits and epochs.

CREATE OR REPLACE VIEW snowflake_layouts AS
SELECT name,
    format.layout AS bits,
    format.tick_ms * interval '1 millisecond' AS tick,
    format.epoch AT TIME ZONE 'UTC' AS epoch,
    snowflake_portable_time(format.last_tick, format) AS last_instant,
    (format.sequence_max + 1) * 1000 / format.tick_ms AS ids_per_second,
    preset.datacenter_id,
    preset.worker_id,
    preset.sequence,
    preset.source
FROM (VALUES
    ('twitter', NULL, 'machine: 5 bits of datacenter and 5 of worker', 'position in the tick',
        'https://github.com/twitter-archive/snowflake/tree/snowflake-2010: IdWorker.scala'),
    ('discord', 'internal worker ID', 'internal process ID', 'counter of the process',
        'https://discord.com/developers/docs/reference#snowflakes'),
    ('instagram', NULL, 'logical shard', 'counter of the shard',
        'https://instagram-engineering.com/sharding-ids-at-instagram-1cf5a71e5a5c'),
    ('mastodon', NULL, NULL,
        'tail: row counter of the table, plus a hash of the time; random for backdated rows',
        'https://github.com/mastodon/mastodon: lib/mastodon/snowflake.rb'),
    ('sonyflake', NULL, 'machine', 'position in the tick', 'https://github.com/sony/sonyflake: sonyflake.go, version 1'),
    ('uid-generator', NULL, 'start of a process', 'position in the tick',
        'https://github.com/baidu/uid-generator: DefaultUidGenerator.java'),
    ('pgedge', NULL, 'snowflake.node', 'position in the tick, from a PostgreSQL sequence',
        'https://github.com/pgEdge/snowflake: snowflake.c'),
    ('leaf', NULL, 'worker', 'position in the tick, from a random start',
        'https://github.com/Meituan-Dianping/Leaf: SnowflakeIDGenImpl.java')
) AS preset (name, datacenter_id, worker_id, sequence, source), snowflake_portable_format(preset.name) AS format;

GRANT SELECT ON snowflake_layouts TO PUBLIC;
