-- The last step of an upgrade. In the previous version, spare worker IDs had leases of any length, and the ring contained seven
-- eighths of the worker IDs. A quarantine of the spare worker IDs begins now. By its end, all grants that may have been lost have
-- ended. Until then, no timeline is settled, and no row is known to be newer than the changes that may have been lost. If the
-- previous version began a quarantine, or should have begun one, the common spare worker IDs stay closed during that quarantine,
-- because they belonged to the ring. Outside that quarantine, the registry answers its servers as before.
DO $upgraded$
DECLARE
    f snowflake_registry.fleet;
    i snowflake_registry.identity;
    now_at timestamptz := clock_timestamp();
BEGIN
    UPDATE snowflake_registry.fleet AS u SET
        spare_until = snowflake_registry.sum_of(snowflake_registry.point_of(u, now_at), snowflake_registry.far(u)),
        newest_seen = 0;
    IF FOUND THEN
        f := snowflake_registry.mark_fleet();
        i := snowflake_registry.identity_now();
        IF snowflake_registry.moved(f, i) THEN
            f := snowflake_registry.begin_life(f, i, NULL, now_at);
        END IF;
        UPDATE snowflake_registry.fleet SET spare_closed = true;
        PERFORM snowflake_registry.mark_fleet();
    END IF;
END
$upgraded$;
DELETE FROM snowflake_registry.ring;
