-- COPY inserts rows in batches, because the planner support puts functions that are declared STABLE into its defaults.
ALTER FUNCTION snowflake_nextval() SUPPORT snowflake_copy_support;
ALTER FUNCTION snowflake_segment_nextval(text) SUPPORT snowflake_copy_support;
