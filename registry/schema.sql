-- The registry of a fleet: tables and functions that assign worker IDs and blocks of short numbers to servers. The registry does
-- not need the library.
--
-- Run this script in one of two ways:
--   CREATE EXTENSION snowflake_registry;
--   psql -X -1 -v ON_ERROR_STOP=1 -f snowflake_registry--@VERSION@.sql    (where extension files cannot be installed)
--
-- Points: every bound, start, clock and end of a quarantine is a number in ID space, 0 .. 2^63 - 1. A time is represented by the
-- first ID of its tick, and a duration by the number of IDs in its ticks, rounded up. Sums do not exceed 2^63 - 1. A bound is the
-- last ID that is granted.
--
-- Locks: a function that assigns a worker ID or begins a life locks the row in "fleet" FOR UPDATE. A renewal locks that row FOR
-- SHARE. Both lock it before any row in "node". A function determines which of the two locks it needs before it takes the first
-- one, and never takes the stronger lock while it holds the weaker one, because two sessions could then deadlock. A function for a
-- tag's numbers locks the row in "fleet" FOR SHARE, or FOR UPDATE if it creates or drops a tag, and then the row in "segment".

-- A role that created the schema before could add functions and operators, which the functions of the registry would then run. The schema
-- therefore becomes the caller's, and must be empty. Types are exact, because an operator of that role must not fit better than one of
-- PostgreSQL.
DO $schema$
DECLARE
    ns pg_catalog.pg_namespace;
BEGIN
    SELECT * INTO ns FROM pg_catalog.pg_namespace WHERE nspname = name 'snowflake_registry';
    -- If the registry is installed, the statements below say so.
    IF NOT FOUND OR EXISTS (SELECT FROM pg_catalog.pg_class WHERE relnamespace = ns.oid AND relname = name 'fleet') THEN
        RETURN;
    END IF;
    -- The extension that is being created depends on its schema, too.
    IF EXISTS (
            SELECT FROM pg_catalog.pg_depend
            WHERE refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass::oid AND refobjid = ns.oid
                AND classid <> 'pg_catalog.pg_extension'::pg_catalog.regclass::oid)
        OR EXISTS (
            SELECT FROM pg_catalog.aclexplode(ns.nspacl) AS acl
            WHERE acl.privilege_type = text 'CREATE' AND acl.grantee <> ns.nspowner)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'the schema snowflake_registry already contains objects, or other roles can create objects in it',
            HINT = 'If nobody needs the schema, run "DROP SCHEMA snowflake_registry CASCADE".';
    END IF;
    IF ns.nspowner <> current_user::regrole::oid THEN
        ALTER SCHEMA snowflake_registry OWNER TO CURRENT_USER;
    END IF;
END
$schema$;
