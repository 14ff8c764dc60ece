-- snowflake_portable @VERSION@ for pg_tle: the functions of snowflake_portable.sql as an extension. Run this script with psql in the
-- database, and then CREATE EXTENSION snowflake_portable. Before that, set the same parameters as for snowflake_portable.sql, if any. They
-- become part of the extension, so that a restored dump has the same layout and epoch.
SELECT pgtle.install_extension('snowflake_portable', '@VERSION@',
    'Issues, decodes and searches Snowflake IDs without the library of snowflake_pg',
    format('SET LOCAL snowflake_pg.layout = %L; SET LOCAL snowflake_pg.epoch = %L;',
        coalesce(current_setting('snowflake_pg.layout', true), ''), coalesce(current_setting('snowflake_pg.epoch', true), ''))
    || $snowflake_portable$
