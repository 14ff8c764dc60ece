-- The end of an upgrade. Before it, spare worker IDs had leases of any length, and other numbers were spare. All of them have ended when
-- the spare worker IDs' quarantine, which begins now, ends. Until then, no timeline is settled, and no row is known to be newer than
-- what can be lost. The registry answers its servers as before, because the quarantine of the ring does not begin.
UPDATE snowflake_registry.fleet AS f SET
    spare_until = snowflake_registry.sum_of(snowflake_registry.point_of(f, clock_timestamp()), snowflake_registry.far(f)),
    newest_seen = 0;
SELECT snowflake_registry.mark_fleet() IS NULL AS no_fleet;
DELETE FROM snowflake_registry.ring;
