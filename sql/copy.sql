-- In the column defaults of a COPY, the planner support function replaces these functions with functions that are declared STABLE,
-- so that COPY inserts rows in batches.
ALTER FUNCTION snowflake_nextval() SUPPORT snowflake_copy_support;
ALTER FUNCTION snowflake_segment_nextval(text) SUPPORT snowflake_copy_support;
