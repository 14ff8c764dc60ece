-- The first request of every heartbeat.

CREATE FUNCTION snowflake_registry.hello(fleet uuid, layout text, epoch bigint) RETURNS snowflake_registry.answer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
AS $$
DECLARE
    f snowflake_registry.fleet;
    i snowflake_registry.identity;
    a snowflake_registry.answer;
    now_at timestamptz;
BEGIN
    PERFORM snowflake_registry.check_argument('layout', length(hello.layout) <= 100, 'Pass the layout of the server.');
    PERFORM snowflake_registry.check_argument('epoch', hello.epoch >= 0, 'Pass the epoch of the server.');
    -- Nothing is written unless a life begins, so nothing is locked. It does no harm to return an outdated life, because claim()
    -- refuses it.
    i := snowflake_registry.identity_now();
    f := snowflake_registry.read_fleet();
    a := snowflake_registry.refusal(f, hello.fleet, hello.layout, hello.epoch, clock_timestamp());
    IF a.answer IS NOT NULL THEN
        RETURN a;
    END IF;
    IF snowflake_registry.moved(f, i) THEN
        f := snowflake_registry.lock_fleet(true);
        now_at := clock_timestamp();
        IF snowflake_registry.moved(f, i) THEN
            f := snowflake_registry.begin_life(f, i, NULL, now_at);
        END IF;
    END IF;
    a.answer := 'hello';
    a.life := f.life;
    a.nonce := gen_random_uuid();
    a.now := clock_timestamp();
    RETURN a;
END
$$;
