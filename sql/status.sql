-- Otherwise, the planner expects the view to have 10^12 rows, and PostgreSQL compiles (jit) each query that reads it.
ALTER FUNCTION snowflake_status() ROWS 1;
ALTER FUNCTION snowflake_last_issuer() ROWS 1;
ALTER FUNCTION snowflake_registry_status() ROWS 1;
ALTER FUNCTION snowflake_guard_status() ROWS 1;
CREATE VIEW snowflake_status AS
    SELECT * FROM snowflake_status(), snowflake_last_issuer(), snowflake_registry_status(), snowflake_guard_status();
CREATE VIEW snowflake_stat_backends AS SELECT * FROM snowflake_stat_backends();
CREATE VIEW snowflake_segments AS SELECT * FROM snowflake_segments();
