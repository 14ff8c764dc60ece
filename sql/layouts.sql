CREATE VIEW snowflake_layouts AS SELECT * FROM snowflake_layouts();
GRANT SELECT ON snowflake_layouts TO PUBLIC;
