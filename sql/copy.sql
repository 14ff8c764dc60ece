-- In the column defaults of a COPY, the planner support function replaces these functions with functions that are declared STABLE,
-- so that COPY inserts rows in batches.
ALTER FUNCTION snowflake_nextval() SUPPORT snowflake_copy_support;
ALTER FUNCTION snowflake_segment_nextval(text) SUPPORT snowflake_copy_support;

-- PostgreSQL inlines an SQL function whose parameter occurs several times only if the argument is not volatile and costs at most ten
-- operators. If it repeated a call of these functions, one row would contain several IDs.
ALTER FUNCTION snowflake_copy_nextval() COST 100;
ALTER FUNCTION snowflake_copy_segment(text) COST 100;
