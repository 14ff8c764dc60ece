-- The views for the owner of the registry.

CREATE VIEW snowflake_registry.status AS
SELECT
    f.fleet_id,
    f.layout,
    snowflake_registry.time_of(0, f.epoch, f.low_bits, f.tick_us) AS epoch,
    f.life,
    f.life_since,
    f.life_reason,
    q.until AS quarantine_until,
    CASE WHEN q.until IS NULL THEN NULL
        ELSE (snowflake_registry.division_of(f.worker_bits)).slices > 0 AND (
            NOT f.spare_closed
            OR snowflake_registry.time_of(f.spare_until, f.epoch, f.low_bits, f.tick_us) + interval '10 minutes' < c.now_at
            OR coalesce(f.timeline - f.settled <= (snowflake_registry.division_of(f.worker_bits)).slices, false))
    END AS spare_open,
    CASE WHEN f.floor > 0 THEN snowflake_registry.time_of(f.floor, f.epoch, f.low_bits, f.tick_us) END AS floor,
    (SELECT count(*) FROM snowflake_registry.node) AS worker_ids_used
FROM snowflake_registry.fleet AS f,
    LATERAL (SELECT clock_timestamp() AS now_at) AS c,
    LATERAL (
        SELECT CASE WHEN f.quarantine_until > 0 AND e.quarantine_end >= c.now_at THEN e.quarantine_end END AS until
        FROM (SELECT snowflake_registry.time_of(f.quarantine_until, f.epoch, f.low_bits, f.tick_us) + interval '10 minutes'
            AS quarantine_end) AS e
    ) AS q;

CREATE VIEW snowflake_registry.servers AS
SELECT
    n.datacenter_id,
    n.worker_id,
    CASE
        WHEN n.bound = 9223372036854775807 THEN 'reserved'
        WHEN t.granted_until + interval '10 minutes' < c.now_at THEN 'gone'
        WHEN n.seen >= c.now_at - greatest(n.lease / 144, interval '10 seconds') THEN 'live'
        ELSE 'late'
    END AS state,
    n.about ->> 'host' AS host,
    snowflake_registry.about_number(n.about, 'port') AS port,
    n.about ->> 'data_directory' AS data_directory,
    n.about ->> 'system_identifier' AS system_identifier,
    n.about ->> 'role' AS role,
    n.about ->> 'server_version' AS server_version,
    n.about ->> 'extension_version' AS extension_version,
    n.since,
    n.seen,
    t.granted_until,
    n.lease,
    snowflake_registry.about_number(n.about, 'clock_offset_us') * interval '1 microsecond' AS clock_offset,
    snowflake_registry.about_number(n.about, 'round_trip_us') * interval '1 microsecond' AS round_trip,
    n.life,
    n.holder
FROM snowflake_registry.fleet AS f
    CROSS JOIN snowflake_registry.node AS n
    CROSS JOIN LATERAL (
        SELECT CASE WHEN n.bound = 9223372036854775807 THEN 'infinity'
            ELSE snowflake_registry.time_of(n.bound, f.epoch, f.low_bits, f.tick_us) END AS granted_until
    ) AS t
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now_at) AS c;

CREATE VIEW snowflake_registry.handovers AS
SELECT h.datacenter_id, h.worker_id, h.about ->> 'host' AS host, snowflake_registry.about_number(h.about, 'port') AS port,
    h.about ->> 'data_directory' AS data_directory, h.since, h.seen, h.granted_until, h.ended, h.ended_by, h.start AS first_id,
    h.bound AS last_id, h.life, h.holder
FROM snowflake_registry.history AS h
UNION ALL
SELECT s.datacenter_id, s.worker_id, s.host, s.port, s.data_directory, s.since, s.seen, s.granted_until, NULL, NULL, n.start,
    n.bound, n.life, n.holder
FROM snowflake_registry.servers AS s JOIN snowflake_registry.node AS n USING (datacenter_id, worker_id);

CREATE VIEW snowflake_registry.datacenters AS
SELECT r.datacenter_id, w.worker_ids, u.used, w.worker_ids - u.used AS free
FROM snowflake_registry.fleet AS f
    CROSS JOIN snowflake_registry.ring AS r
    -- Spare worker IDs are assigned only during a quarantine.
    CROSS JOIN LATERAL (SELECT (snowflake_registry.division_of(f.worker_bits)).spare AS worker_ids) AS w
    CROSS JOIN LATERAL (
        SELECT count(*) AS used FROM snowflake_registry.servers AS s
        WHERE s.datacenter_id = r.datacenter_id AND s.worker_id < w.worker_ids AND s.state <> 'gone'
    ) AS u;

CREATE VIEW snowflake_registry.segments AS
SELECT s.tag, s.generation, s.next_value, least(p.skip, 9223372036854775807 - s.next_value)::bigint AS skip, s.step, s.max_step,
    s.updated_at, s.begins_at, s.description
FROM snowflake_registry.segment AS s
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(k.windows), 0) * 64 * s.max_step AS skip FROM snowflake_registry.skip AS k WHERE k.life > s.life
    ) AS p;

CREATE VIEW snowflake_registry.holes AS
SELECT h.tag, h.generation, h.first, h.last, h.life, h.skipped_at FROM snowflake_registry.hole AS h;
