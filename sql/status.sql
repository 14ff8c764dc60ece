CREATE VIEW snowflake_status AS
    SELECT * FROM snowflake_status(), snowflake_last_issuer(), snowflake_registry_status(), snowflake_guard_status();
CREATE VIEW snowflake_stat_backends AS SELECT * FROM snowflake_stat_backends();
CREATE VIEW snowflake_segments AS SELECT * FROM snowflake_segments();
