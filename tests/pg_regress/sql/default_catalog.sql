-- What CREATE EXTENSION puts into a database, and where.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake_pg;
RESET client_min_messages;

-- Volatility decides what the planner may evaluate early, strictness what it may inline: a change here is a change of plans.
SELECT p.proname AS name,
       pg_get_function_identity_arguments(p.oid) AS arguments,
       pg_get_function_result(p.oid) AS result,
       p.provolatile AS volatility,
       p.proisstrict AS strict,
       p.proparallel AS parallel
  FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
 WHERE d.deptype = 'e'
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_pg')
 ORDER BY p.proname;

-- The defaults of arguments, which the identity leaves out.
SELECT pg_get_function_arguments('snowflake_encode'::regproc);

SELECT p.proname AS name, obj_description(p.oid, 'pg_proc') AS comment
  FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
 WHERE d.deptype = 'e'
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_pg')
 ORDER BY p.proname;

-- Nothing but those functions belongs to the extension.
SELECT pg_describe_object(classid, objid, objsubid) AS member
  FROM pg_depend
 WHERE deptype = 'e'
   AND refclassid = 'pg_extension'::regclass
   AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_pg')
 ORDER BY 1;

SELECT extname, extrelocatable, extconfig IS NULL AS no_tables_to_dump
  FROM pg_extension WHERE extname = 'snowflake_pg';
SELECT name, superuser, trusted, relocatable, requires
  FROM pg_available_extension_versions WHERE name = 'snowflake_pg';
