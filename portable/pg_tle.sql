-- snowflake_portable @VERSION@ for pg_tle: registers the functions of snowflake_portable.sql as an extension. Run this script in
-- the database with psql, and then run CREATE EXTENSION snowflake_portable. If snowflake_portable.sql would need parameters, set
-- the same parameters first. They become part of the extension, so that a restored dump has the same layout and epoch.
SELECT pgtle.install_extension('snowflake_portable', '@VERSION@',
    'Issues, decodes and searches Snowflake IDs without the library of snowflake_pg',
    format('SET LOCAL snowflake_pg.layout = %L; SET LOCAL snowflake_pg.epoch = %L;',
        coalesce(current_setting('snowflake_pg.layout', true), ''), coalesce(current_setting('snowflake_pg.epoch', true), ''))
    || $snowflake_portable$
