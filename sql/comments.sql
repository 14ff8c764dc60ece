COMMENT ON FUNCTION snowflake_nextval() IS
    'issue one ID';
COMMENT ON FUNCTION snowflake_copy_support(internal) IS
    'planner support function that lets COPY insert rows in batches';
COMMENT ON FUNCTION snowflake_copy_nextval() IS
    'issue one ID during COPY; elsewhere, call snowflake_nextval()';
COMMENT ON FUNCTION snowflake_copy_segment(text) IS
    'draw the next number of a segment during COPY; elsewhere, call snowflake_segment_nextval()';
COMMENT ON FUNCTION snowflake_nextval_batch(integer) IS
    'issue the given number of IDs, which increase but are not necessarily consecutive';
COMMENT ON FUNCTION snowflake_reserve(integer) IS
    'issue the given number of consecutive IDs within one tick, and return the first of them';
COMMENT ON FUNCTION snowflake_currval() IS
    'last ID issued to this session; behind a transaction pooler, the ID might have been issued to a different client';
COMMENT ON FUNCTION snowflake_decode(bigint) IS
    'parts of an ID, decoded with the layout and epoch of this server';
COMMENT ON FUNCTION snowflake_describe(bigint) IS
    'parts of an ID as JSON, decoded with the layout and epoch of this server; "id" is a string, because many JSON parsers round numbers';
COMMENT ON FUNCTION snowflake_describe(bigint, text) IS
    'parts of an ID as JSON, decoded with the given layout and its default epoch';
COMMENT ON FUNCTION snowflake_describe(bigint, text, timestamptz) IS
    'parts of an ID as JSON, decoded with the given layout and epoch';
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
    'time encoded in an ID, according to the layout and epoch of this server';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer) IS
    'ID with the given parts, encoded with the layout and epoch of this server';
COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS
    'first ID of the tick that contains the given time';
COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS
    'last ID of the tick that contains the given time';
COMMENT ON FUNCTION snowflake_first_id_from(timestamptz) IS
    'first ID at or after the given time; after the layout''s last tick, a number above all IDs, or NULL in a 63-bit layout';
COMMENT ON FUNCTION snowflake_last_id_before(timestamptz) IS
    'last ID before the given time, or -1 if there is none';
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
    'true if the time in the given ID is at or after start and before stop; queries that call the function can use an index on the ID';
COMMENT ON FUNCTION snowflake_accept_clock() IS
    'accept the current time of the server''s clock, and return how far the time in new IDs moved forward';
COMMENT ON FUNCTION snowflake_set_mark(bigint, regclass, text, boolean) IS
    'set the high-water mark and return the old one; to lower it, pass a table whose IDs are below the new mark, or force => true';
COMMENT ON FUNCTION snowflake_check(regclass, text, integer[]) IS
    'find duplicate IDs, IDs that this server has not issued, and values that are not IDs; return no rows if the table contains none';
COMMENT ON FUNCTION snowflake_guard(regclass, text) IS
    'create or enable a guard on a table; the guard refuses replicated rows whose IDs have the worker ID of this server';
COMMENT ON FUNCTION snowflake_guard_row() IS
    'trigger function of a guard; snowflake_guard() creates the trigger';
COMMENT ON FUNCTION snowflake_guard_status() IS
    'number of replicated rows that guards have refused, and the last such row, as shown by view snowflake_status';
COMMENT ON FUNCTION snowflake_status() IS
    'state of the ID generator, as shown by view snowflake_status';
COMMENT ON FUNCTION snowflake_last_issuer() IS
    'worker ID and datacenter ID of the server that wrote the high-water mark, as shown by view snowflake_status';
COMMENT ON FUNCTION snowflake_registry_status() IS
    'worker ID and grant that this server received from the registry, as shown by view snowflake_status';
COMMENT ON VIEW snowflake_status IS
    'state of the ID generator: identity of this server, last ID, clock, high-water mark, and statistics';
COMMENT ON FUNCTION snowflake_stat_backends() IS
    'number of IDs issued to each backend, and how often and how long the backend waited, as shown by view snowflake_stat_backends';
COMMENT ON VIEW snowflake_stat_backends IS
    'number of IDs issued to each backend, and how often and how long the backend waited';
COMMENT ON FUNCTION snowflake_stat_reset() IS
    'reset all counts in snowflake_status and snowflake_stat_backends to 0';
COMMENT ON FUNCTION snowflake_decode(bigint, text) IS
    'parts of an ID, decoded with the given layout and its default epoch';
COMMENT ON FUNCTION snowflake_decode(bigint, text, timestamptz) IS
    'parts of an ID, decoded with the given layout and epoch';
COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS
    'time encoded in an ID, according to the given layout and its default epoch';
COMMENT ON FUNCTION snowflake_timestamp(bigint, text, timestamptz) IS
    'time encoded in an ID, according to the given layout and epoch';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, text) IS
    'ID with the given parts, encoded with the given layout and its default epoch';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, text, timestamptz) IS
    'ID with the given parts, encoded with the given layout and epoch';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer, text) IS
    'ID with the given parts, encoded with the given layout and its default epoch';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer, text, timestamptz) IS
    'ID with the given parts, encoded with the given layout and epoch';
COMMENT ON FUNCTION snowflake_min_id(timestamptz, text) IS
    'first ID of the tick that contains the given time, for the given layout and its default epoch';
COMMENT ON FUNCTION snowflake_min_id(timestamptz, text, timestamptz) IS
    'first ID of the tick that contains the given time, for the given layout and epoch';
COMMENT ON FUNCTION snowflake_max_id(timestamptz, text) IS
    'last ID of the tick that contains the given time, for the given layout and its default epoch';
COMMENT ON FUNCTION snowflake_max_id(timestamptz, text, timestamptz) IS
    'last ID of the tick that contains the given time, for the given layout and epoch';
COMMENT ON FUNCTION snowflake_to_text(bigint) IS
    'ID as a 13-character string that sorts like the ID';
COMMENT ON FUNCTION snowflake_from_text(text) IS
    'ID for a string returned by snowflake_to_text()';
COMMENT ON FUNCTION snowflake_to_uuid(bigint) IS
    'ID as a version 8 UUID that sorts like the ID';
COMMENT ON FUNCTION snowflake_from_uuid(uuid) IS
    'ID for a UUID returned by snowflake_to_uuid()';
COMMENT ON FUNCTION snowflake_conceal(bigint, bytea, bytea) IS
    'conceal an ID: return a positive number that reveals neither the time nor the server in the ID';
COMMENT ON FUNCTION snowflake_reveal(bigint, bytea, bytea) IS
    'original ID for a number returned by snowflake_conceal(), given the same key and tweak';
COMMENT ON FUNCTION snowflake_conceal_text(bigint, bytea, bytea) IS
    'conceal an ID, and return the result as a 13-character string';
COMMENT ON FUNCTION snowflake_reveal_text(text, bytea, bytea) IS
    'original ID for a string returned by snowflake_conceal_text(), given the same key and tweak';
COMMENT ON DOMAIN snowflake_text IS
    'ID as text that sorts by byte value, regardless of the database collation';
COMMENT ON FUNCTION snowflake_layouts() IS
    'named layouts, as shown by view snowflake_layouts';
COMMENT ON VIEW snowflake_layouts IS
    'named layouts: field widths in bits, length of a tick, epoch, and contents of each field';
COMMENT ON FUNCTION snowflake_partition_bounds(timestamptz, timestamptz, interval) IS
    'bounds of the partitions that cover a time range, both as times and as IDs';
COMMENT ON FUNCTION snowflake_create_partitions(regclass, interval, integer, timestamptz) IS
    'create the missing partitions of a table, starting with the interval that contains the given time';
COMMENT ON FUNCTION snowflake_create_series(text, text, text, text, bigint) IS
    'create a series: a table that stores the last number of each period';
COMMENT ON FUNCTION snowflake_alter_series(regclass, text, text, bigint) IS
    'change the template, the time zone or the first number of a series';
COMMENT ON FUNCTION snowflake_series_row() IS
    'trigger function of a series; snowflake_create_series() creates the trigger';
COMMENT ON FUNCTION snowflake_series() IS
    'series on which the current user has privileges, as shown by view snowflake_series';
COMMENT ON VIEW snowflake_series IS
    'series on which the current user has privileges, with their definitions';
COMMENT ON FUNCTION snowflake_serial(regclass, timestamptz) IS
    'issue the next serial of a series for the period that contains the given time';
COMMENT ON FUNCTION snowflake_serial(regclass, date) IS
    'issue the next serial of a series for the period that contains the given day';
COMMENT ON FUNCTION snowflake_serial_parse(regclass, text) IS
    'period and number of a serial';
COMMENT ON FUNCTION snowflake_serial_gaps(regclass, text, regclass) IS
    'issued numbers of a series that are missing from the given column';
COMMENT ON FUNCTION snowflake_number_at_commit(regclass, text, regclass, text) IS
    'create triggers that number the rows of a table at the end of each transaction';
COMMENT ON FUNCTION snowflake_number_row() IS
    'trigger function that numbers a row; snowflake_number_at_commit() creates the trigger';
COMMENT ON FUNCTION snowflake_number_keep() IS
    'trigger function that rejects statements that write or remove numbers; snowflake_number_at_commit() creates the trigger';
COMMENT ON FUNCTION snowflake_version() IS
    'version of the extension library that is loaded in this session';
COMMENT ON FUNCTION snowflake_segment_nextval(text) IS
    'draw the next number of a segment';
COMMENT ON FUNCTION snowflake_segments() IS
    'segments from which this server issues numbers, as shown by view snowflake_segments';
COMMENT ON VIEW snowflake_segments IS
    'segments from which this server issues numbers: the next number, how many numbers are left, and how long they will last';
