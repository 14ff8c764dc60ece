-- Upgrades a registry from version 0.2.0-dev to version @VERSION@ while its servers run. Servers of both versions can use the
-- registry.
--
-- Run this script in the same way in which the registry was created:
--   psql -X -1 -v ON_ERROR_STOP=1 -f snowflake_registry--0.2.0-dev--@VERSION@.sql
--   ALTER EXTENSION snowflake_registry UPDATE;
-- If a failover loses the upgrade, run the script again.

DO $check$
BEGIN
    IF to_regclass('snowflake_registry.fleet') IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = 'there is no registry in this database',
            HINT = 'Run the script in the database that contains the registry.';
    END IF;
    IF EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = 'snowflake_registry.fleet'::regclass AND attname = 'mark') THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_object', MESSAGE = 'the registry has already been upgraded',
            HINT = 'No action is needed.';
    END IF;
END
$check$;

SET LOCAL lock_timeout = '10s';
LOCK TABLE snowflake_registry.fleet IN ACCESS EXCLUSIVE MODE;
ALTER TABLE snowflake_registry.fleet
    ADD COLUMN spare_until bigint NOT NULL DEFAULT 9223372036854775807 CHECK (spare_until >= 0),
    ADD COLUMN spare_before bigint NOT NULL DEFAULT 0 CHECK (spare_before >= 0),
    ADD COLUMN settled bigint,
    ADD COLUMN mark xid NOT NULL DEFAULT '0';
DROP FUNCTION snowflake_registry.begin_life(snowflake_registry.fleet, snowflake_registry.identity, boolean, timestamptz, text);
