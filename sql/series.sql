CREATE VIEW snowflake_series AS SELECT * FROM snowflake_series();
GRANT SELECT ON snowflake_series TO PUBLIC;
