COMMENT ON FUNCTION snowflake_nextval() IS
    'issue one ID';
COMMENT ON FUNCTION snowflake_nextval_batch(integer) IS
    'issue count IDs, increasing but not necessarily consecutive';
COMMENT ON FUNCTION snowflake_reserve(integer) IS
    'issue count consecutive IDs of one tick and return the first';
COMMENT ON FUNCTION snowflake_currval() IS
    'last ID issued to this session';
COMMENT ON FUNCTION snowflake_decode(bigint) IS
    'parts of an ID, read with this server''s layout and epoch';
COMMENT ON FUNCTION snowflake_describe(bigint) IS
    'parts of an ID as JSON, with the layout and epoch they were read with';
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
    'time of an ID, read with this server''s layout and epoch';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer) IS
    'ID with the given parts';
COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS
    'first ID of the tick that holds an instant';
COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS
    'last ID of the tick that holds an instant';
COMMENT ON FUNCTION snowflake_first_id_from(timestamptz) IS
    'first ID at or after an instant; after the end of the layout a number above all its IDs, NULL where there is none';
COMMENT ON FUNCTION snowflake_last_id_before(timestamptz) IS
    'last ID before an instant, -1 where there is none';
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
    'true where the time of an ID is at or after "from" and before "until"; inlined, so that an index on the ID is used';
COMMENT ON FUNCTION snowflake_accept_clock() IS
    'take the server''s clock for right, so that IDs follow it; returns by how much';
COMMENT ON FUNCTION snowflake_set_mark(bigint, regclass, text, boolean) IS
    'set the high-water mark; lowered only above the IDs of a table, or by force; returns the mark before';
