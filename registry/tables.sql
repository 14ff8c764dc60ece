-- The tables of the registry.

DO $install$
BEGIN
    IF to_regclass('snowflake_registry.fleet') IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_object',
            MESSAGE = 'the registry is already installed in this database',
            HINT = 'To see its state, run "SELECT * FROM snowflake_registry.status".';
    END IF;
    -- CREATE EXTENSION has already created the schema.
    IF to_regnamespace('snowflake_registry') IS NULL THEN
        CREATE SCHEMA snowflake_registry;
    END IF;
END
$install$;

-- Tables. They are empty until create_fleet() is called, so that a dump can be restored into a new extension.

CREATE TABLE snowflake_registry.fleet (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    fleet_id uuid NOT NULL,
    layout text NOT NULL,
    epoch bigint NOT NULL,
    timestamp_bits integer NOT NULL,
    datacenter_bits integer NOT NULL,
    worker_bits integer NOT NULL,
    low_bits integer NOT NULL,
    tick_us bigint NOT NULL,
    life bigint NOT NULL CHECK (life > 0),
    life_since timestamptz NOT NULL,
    life_reason text NOT NULL,
    system_identifier bigint NOT NULL,
    timeline bigint NOT NULL,
    database_oid oid NOT NULL,
    table_oid oid NOT NULL,
    quarantine_until bigint NOT NULL CHECK (quarantine_until >= 0),
    quarantine_before bigint NOT NULL CHECK (quarantine_before >= 0),
    newest_seen bigint NOT NULL CHECK (newest_seen >= 0),
    spare_closed boolean NOT NULL,
    floor bigint NOT NULL CHECK (floor >= 0),
    generation bigint NOT NULL DEFAULT 0 CHECK (generation >= 0),
    -- Columns added in later versions come last, so that an upgrade adds them in the same order. The default applies to rows from a
    -- dump of version 0.2.0-dev, which do not record how long a spare worker ID may have been granted.
    spare_until bigint NOT NULL DEFAULT 9223372036854775807 CHECK (spare_until >= 0),
    spare_before bigint NOT NULL DEFAULT 0 CHECK (spare_before >= 0),
    settled bigint,
    mark xid NOT NULL DEFAULT '0'
);

CREATE TABLE snowflake_registry.ring (
    datacenter_id integer PRIMARY KEY,
    next_worker bigint NOT NULL,
    next_spare bigint NOT NULL
);

-- Each heartbeat updates one row. To keep the new row version on the same page, half of each page is left free, and the columns
-- that a heartbeat changes are not indexed.
CREATE TABLE snowflake_registry.node (
    datacenter_id integer NOT NULL,
    worker_id integer NOT NULL,
    holder uuid NOT NULL,
    nonce uuid NOT NULL,
    count bigint NOT NULL CHECK (count > 0),
    life bigint NOT NULL CHECK (life > 0),
    start bigint NOT NULL CHECK (start >= 0),
    bound bigint NOT NULL CHECK (bound >= 0),
    since timestamptz NOT NULL,
    seen timestamptz NOT NULL,
    lease interval NOT NULL,
    about jsonb NOT NULL,
    PRIMARY KEY (datacenter_id, worker_id)
) WITH (fillfactor = 50);

CREATE INDEX node_holder ON snowflake_registry.node (holder);

CREATE TABLE snowflake_registry.history (
    datacenter_id integer NOT NULL,
    worker_id integer NOT NULL,
    holder uuid NOT NULL,
    life bigint NOT NULL,
    start bigint NOT NULL,
    bound bigint NOT NULL,
    since timestamptz NOT NULL,
    seen timestamptz NOT NULL,
    granted_until timestamptz NOT NULL,
    ended timestamptz NOT NULL,
    ended_by text NOT NULL,
    about jsonb NOT NULL
);

CREATE INDEX history_worker ON snowflake_registry.history (datacenter_id, worker_id, ended);

CREATE TABLE snowflake_registry.segment (
    tag text PRIMARY KEY,
    generation bigint NOT NULL,
    next_value bigint NOT NULL CHECK (next_value >= 0),
    step bigint NOT NULL CHECK (step > 0),
    max_step bigint NOT NULL CHECK (max_step >= step),
    top_nonce uuid NOT NULL,
    top_first bigint NOT NULL,
    below_nonce uuid,
    below_first bigint,
    life bigint NOT NULL,
    window_start timestamptz NOT NULL,
    window_used bigint NOT NULL,
    updated_at timestamptz NOT NULL,
    begins_at timestamptz,
    description text
) WITH (fillfactor = 50);

-- A new life inserts one row here. It changes no rows in "segment", regardless of the number of tags.
CREATE TABLE snowflake_registry.skip (
    life bigint PRIMARY KEY,
    quarantine bigint NOT NULL,
    since timestamptz NOT NULL,
    lost bigint NOT NULL CHECK (lost >= 0),
    windows bigint NOT NULL CHECK (windows >= 0)
);

CREATE TABLE snowflake_registry.hole (
    tag text NOT NULL,
    generation bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    life bigint NOT NULL,
    skipped_at timestamptz NOT NULL
);

DO $config$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'snowflake_registry') THEN
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.fleet', '');
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.ring', '');
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.node', '');
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.history', '');
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.segment', '');
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.skip', '');
        PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.hole', '');
    END IF;
END
$config$;

CREATE TYPE snowflake_registry.answer AS (
    answer text,
    reason text,
    datacenter integer,
    worker integer,
    fleet uuid,
    life bigint,
    nonce uuid,
    count bigint,
    start bigint,
    bound bigint,
    until timestamptz,
    now timestamptz,
    other jsonb
);

CREATE TYPE snowflake_registry.block AS (
    answer text,
    reason text,
    fleet uuid,
    life bigint,
    tag text,
    generation bigint,
    first bigint,
    count bigint,
    nonce uuid,
    step bigint,
    max_step bigint,
    until timestamptz,
    now timestamptz
);

CREATE TYPE snowflake_registry.identity AS (
    system_identifier bigint,
    timeline bigint,
    database_oid oid,
    table_oid oid
);

CREATE TYPE snowflake_registry.layout AS (
    layout text,
    timestamp_bits integer,
    datacenter_bits integer,
    worker_bits integer,
    low_bits integer,
    tick_us bigint
);
