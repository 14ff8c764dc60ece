COMMENT ON FUNCTION snowflake_nextval() IS
    'issue one ID';
COMMENT ON FUNCTION snowflake_nextval_batch(integer) IS
    'issue count IDs, increasing but not necessarily consecutive';
COMMENT ON FUNCTION snowflake_reserve(integer) IS
    'issue count consecutive IDs of one tick and return the first';
COMMENT ON FUNCTION snowflake_currval() IS
    'last ID issued to this session since it began or was discarded; through a transaction pooler it can be another client''s';
COMMENT ON FUNCTION snowflake_decode(bigint) IS
    'parts of an ID, read with this server''s layout and epoch';
COMMENT ON FUNCTION snowflake_describe(bigint) IS
    'parts of an ID as JSON, with the layout and epoch they were read with; "id" is a string, because JSON readers round numbers';
COMMENT ON FUNCTION snowflake_describe(bigint, text) IS
    'parts of an ID of a layout as JSON, with the epoch that goes with it';
COMMENT ON FUNCTION snowflake_describe(bigint, text, timestamptz) IS
    'parts of an ID of a layout and an epoch as JSON';
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
    'true where the time of an ID is at or after start and before stop; inlined, so that an index on the ID is used';
COMMENT ON FUNCTION snowflake_accept_clock() IS
    'take the server''s clock for right, so that IDs follow it; returns by how much';
COMMENT ON FUNCTION snowflake_set_mark(bigint, regclass, text, boolean) IS
    'set the high-water mark; lowered only above the IDs of a table, or by force; returns the mark before';
COMMENT ON FUNCTION snowflake_check(regclass, text, integer[]) IS
    'IDs of a table that are there twice, that this server has not issued, or that are none; no rows where nothing is found';
COMMENT ON FUNCTION snowflake_status() IS
    'what the generator is doing, as view snowflake_status shows it';
COMMENT ON FUNCTION snowflake_last_issuer() IS
    'numbers of the server that wrote the high-water mark, as view snowflake_status shows them';
COMMENT ON VIEW snowflake_status IS
    'what the generator is doing: who this server is, its last ID, its clock and mark, and counts of all backends';
COMMENT ON FUNCTION snowflake_stat_backends() IS
    'what each backend has drawn and waited for, as view snowflake_stat_backends shows it';
COMMENT ON VIEW snowflake_stat_backends IS
    'what each backend has drawn and waited for';
COMMENT ON FUNCTION snowflake_stat_reset() IS
    'let all counts of snowflake_status and snowflake_stat_backends begin at 0 again';
COMMENT ON FUNCTION snowflake_decode(bigint, text) IS
    'parts of an ID of a layout, with the epoch that goes with it';
COMMENT ON FUNCTION snowflake_decode(bigint, text, timestamptz) IS
    'parts of an ID of a layout and an epoch';
COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS
    'time of an ID of a layout, with the epoch that goes with it';
COMMENT ON FUNCTION snowflake_timestamp(bigint, text, timestamptz) IS
    'time of an ID of a layout and an epoch';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, text) IS
    'ID of a layout with the given parts, with the epoch that goes with it';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, text, timestamptz) IS
    'ID of a layout and an epoch with the given parts';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer, text) IS
    'ID of a layout with the given parts, with the epoch that goes with it';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer, text, timestamptz) IS
    'ID of a layout and an epoch with the given parts';
COMMENT ON FUNCTION snowflake_min_id(timestamptz, text) IS
    'first ID of a layout in the tick that holds an instant, with the epoch that goes with the layout';
COMMENT ON FUNCTION snowflake_min_id(timestamptz, text, timestamptz) IS
    'first ID of a layout and an epoch in the tick that holds an instant';
COMMENT ON FUNCTION snowflake_max_id(timestamptz, text) IS
    'last ID of a layout in the tick that holds an instant, with the epoch that goes with the layout';
COMMENT ON FUNCTION snowflake_max_id(timestamptz, text, timestamptz) IS
    'last ID of a layout and an epoch in the tick that holds an instant';
COMMENT ON FUNCTION snowflake_to_text(bigint) IS
    'an ID as 13 characters that sort like it';
COMMENT ON FUNCTION snowflake_from_text(text) IS
    'ID of a text that snowflake_to_text() has made';
COMMENT ON DOMAIN snowflake_text IS
    'an ID as text, sorted by bytes whatever the collation of the database';
COMMENT ON FUNCTION snowflake_layouts() IS
    'layouts that go by a name, as view snowflake_layouts shows them';
COMMENT ON VIEW snowflake_layouts IS
    'layouts that go by a name: their bits, tick and epoch, and what their systems keep in each part';
COMMENT ON FUNCTION snowflake_partition_bounds(timestamptz, timestamptz, interval) IS
    'bounds, as times and as IDs, of the partitions that cover a range of time';
COMMENT ON FUNCTION snowflake_create_partitions(regclass, interval, integer, timestamptz) IS
    'make the partitions of a table that are missing for the interval of a time and those that follow';
COMMENT ON FUNCTION snowflake_version() IS
    'version of the library that this session runs';
