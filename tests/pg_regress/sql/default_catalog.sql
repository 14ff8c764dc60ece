-- What CREATE EXTENSION puts into a database. The output is unaligned and has no row counts, so that a new function does not change
-- other lines.
\pset format unaligned
\pset footer off

-- Volatility decides what the planner may work out early, strictness what it may inline: a change here changes plans.
SELECT p.proname AS name,
       CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' WHEN 'v' THEN 'volatile' END AS volatility,
       CASE WHEN p.proisstrict THEN 'strict' END AS strictness,
       CASE p.proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' WHEN 'u' THEN 'unsafe' END AS parallel,
       l.lanname AS language,
       p.prosecdef AS security_definer,
       p.proacl IS NULL AS everybody_may_call
  FROM pg_depend d
       JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
       JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
       JOIN pg_language l ON l.oid = p.prolang
 WHERE d.deptype = 'e' AND e.extname = 'snowflake_pg'
 ORDER BY p.proname, pg_get_function_identity_arguments(p.oid);

-- Arguments with their names and defaults, and results.
SELECT p.proname AS name, pg_get_function_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result
  FROM pg_depend d
       JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
       JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
 WHERE d.deptype = 'e' AND e.extname = 'snowflake_pg'
 ORDER BY p.proname, pg_get_function_identity_arguments(p.oid);

-- No name of a parameter or a column needs quotes.
SELECT p.oid::regprocedure AS function, name
  FROM pg_depend d
       JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
       JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
       CROSS JOIN unnest(p.proargnames) AS name
 WHERE d.deptype = 'e' AND e.extname = 'snowflake_pg' AND quote_ident(name) <> name;

-- Nothing but those functions, the views and the type of texts, each with its comment. (From 18 on the types that come with
-- them are members, too.)
SELECT pg_describe_object(classid, objid, 0) AS member, obj_description(objid, classid::regclass::name) AS comment
  FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
 WHERE d.deptype = 'e' AND e.extname = 'snowflake_pg'
   AND NOT (classid = 'pg_type'::regclass AND objid IN (SELECT oid FROM pg_type WHERE typrelid <> 0 OR typelem <> 0))
 ORDER BY pg_describe_object(classid, objid, 0) COLLATE "C";
SELECT obj_description(oid, 'pg_extension') AS comment FROM pg_extension WHERE extname = 'snowflake_pg';

SELECT extrelocatable AS relocatable, extconfig IS NULL AS no_tables_to_dump
  FROM pg_extension WHERE extname = 'snowflake_pg';
SELECT DISTINCT superuser, trusted, relocatable, schema, requires
  FROM pg_available_extension_versions WHERE name = 'snowflake_pg';
SELECT installed_version = default_version AS installed_is_default
  FROM pg_available_extensions WHERE name = 'snowflake_pg';
