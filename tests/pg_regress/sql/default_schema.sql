-- The extension works in any schema and can move, so no function may count on finding another in the search path.
SET client_min_messages = warning;
DROP EXTENSION IF EXISTS snowflake_pg;
CREATE EXTENSION snowflake_pg SCHEMA public;
RESET client_min_messages;
CREATE SCHEMA ids;
CREATE SCHEMA elsewhere;

DROP EXTENSION snowflake_pg;
CREATE EXTENSION snowflake_pg SCHEMA ids;
SELECT count(*) AS functions, array_agg(DISTINCT pronamespace::regnamespace) AS schemas
  FROM pg_proc WHERE proname LIKE 'snowflake%';

-- Here snowflake_between finds snowflake_last_id_before without the schema in the search path.
SHOW search_path;
SELECT ids.snowflake_between(1541815603606036480, '2022-06-28 16:00Z', '2022-06-28 17:00Z');
SELECT snowflake_nextval();
CREATE TABLE kept (id bigint DEFAULT ids.snowflake_nextval());
INSERT INTO kept DEFAULT VALUES;

ALTER EXTENSION snowflake_pg SET SCHEMA elsewhere;
SELECT count(*) AS functions, array_agg(DISTINCT pronamespace::regnamespace) AS schemas
  FROM pg_proc WHERE proname LIKE 'snowflake%';
SELECT ids.snowflake_nextval();
SELECT elsewhere.snowflake_between(1541815603606036480, '2022-06-28 16:00Z', '2022-06-28 17:00Z');
-- The default of a column follows the function.
INSERT INTO kept DEFAULT VALUES;
SELECT count(DISTINCT id) FROM kept;
SELECT pg_get_expr(adbin, adrelid) AS "default" FROM pg_attrdef WHERE adrelid = 'kept'::regclass;

-- A table in use keeps the extension.
DROP EXTENSION snowflake_pg;
DROP EXTENSION snowflake_pg CASCADE;
SELECT count(*) AS rows_kept, count(id) AS ids_kept FROM kept;
SELECT count(*) AS functions FROM pg_proc WHERE proname LIKE 'snowflake%';
-- Again after a drop, in one transaction with its use.
BEGIN;
CREATE EXTENSION snowflake_pg;
SELECT snowflake_nextval() > 0 AS issued;
ROLLBACK;
SELECT count(*) AS functions FROM pg_proc WHERE proname LIKE 'snowflake%';

DROP TABLE kept;
DROP SCHEMA ids;
DROP SCHEMA elsewhere;
