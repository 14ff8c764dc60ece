-- The extension works in any schema and can move, so no function may count on finding another in the search path.
CREATE SCHEMA ids;
CREATE SCHEMA elsewhere;

DROP EXTENSION snowflake_pg;
CREATE EXTENSION snowflake_pg SCHEMA ids;
SELECT DISTINCT pronamespace::regnamespace AS schema FROM pg_proc WHERE proname LIKE 'snowflake%';
-- Nothing else came with it except views and a type.
SELECT relname, relkind FROM pg_class WHERE relnamespace = 'ids'::regnamespace ORDER BY relname COLLATE "C";
SELECT typname, typtype FROM pg_type WHERE typnamespace = 'ids'::regnamespace ORDER BY typname COLLATE "C";

-- Here snowflake_between finds the functions it is made of.
SHOW search_path;
SELECT ids.snowflake_between(1541815603606036480, '2022-06-28 16:00Z', '2022-06-28 17:00Z');
SELECT snowflake_nextval();
CREATE TABLE kept (id bigint PRIMARY KEY DEFAULT ids.snowflake_nextval());
CREATE VIEW recent AS SELECT id FROM kept WHERE ids.snowflake_between(id, now() - interval '1 hour', 'infinity');
INSERT INTO kept DEFAULT VALUES;
SELECT count(*) FROM recent;

ALTER EXTENSION snowflake_pg SET SCHEMA elsewhere;
SELECT DISTINCT pronamespace::regnamespace AS schema FROM pg_proc WHERE proname LIKE 'snowflake%';
SELECT ids.snowflake_nextval();
SELECT elsewhere.snowflake_between(1541815603606036480, '2022-06-28 16:00Z', '2022-06-28 17:00Z');
SELECT count(*) AS layouts FROM elsewhere.snowflake_layouts;
SELECT pg_typeof(elsewhere.snowflake_to_text(1));
-- Defaults and views follow.
INSERT INTO kept DEFAULT VALUES;
SELECT count(*) FROM recent;
SELECT pg_get_expr(adbin, adrelid) AS "default" FROM pg_attrdef WHERE adrelid = 'kept'::regclass;

-- A table in use keeps the extension; without it, the table keeps its IDs.
DROP EXTENSION snowflake_pg;
DROP EXTENSION snowflake_pg CASCADE;
SELECT count(id) AS ids FROM kept;
SELECT count(*) AS functions FROM pg_proc WHERE proname LIKE 'snowflake%';

-- Created and used in one transaction, which leaves nothing when it is rolled back.
BEGIN;
CREATE EXTENSION snowflake_pg;
SELECT snowflake_nextval() > 0 AS issued;
ROLLBACK;
SELECT count(*) AS functions FROM pg_proc WHERE proname LIKE 'snowflake%';

DROP TABLE kept;
DROP SCHEMA ids;
DROP SCHEMA elsewhere;
-- For the files that run after this one.
CREATE EXTENSION snowflake_pg;
