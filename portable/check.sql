-- Searches a table for duplicate and unexpected IDs. The portable functions have access neither to a server's worker ID nor to its
-- high-water mark, so the results are the same as on a server without a worker ID.

-- "future" is the first ID that is too far ahead of the clock. "shown" is "key" in the form in which error messages show it.
CREATE OR REPLACE FUNCTION snowflake_portable_check(
        relation regclass, key text, workers integer[], format snowflake_portable_format, future bigint, shown text)
    RETURNS TABLE (problem text, datacenter_id integer, worker_id integer, ids bigint, first_id bigint, last_id bigint)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
    -- Unqualified names can refer only to objects of PostgreSQL. A policy that hides rows causes an error.
    SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
DECLARE
    type oid;
    base oid;
    node bigint := (format).datacenter_max << (format).datacenter_shift | (format).worker_max << (format).worker_shift;
BEGIN
    IF relation IS NULL OR key IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
            MESSAGE = format('argument "%s" must not be null', CASE WHEN relation IS NULL THEN 'relation' ELSE 'key' END),
            HINT = format('Pass the name of an existing %s.', CASE WHEN relation IS NULL THEN 'table' ELSE 'column' END);
    ELSIF octet_length(key) > 63 THEN
        RAISE EXCEPTION USING ERRCODE = 'name_too_long',
            MESSAGE = format('name "%s" is too long', shown),
            DETAIL = 'A name can be at most 63 bytes long.',
            HINT = 'Pass the name of an existing column.';
    END IF;
    SELECT atttypid INTO type FROM pg_attribute WHERE attrelid = relation AND attname = key AND NOT attisdropped;
    LOOP
        SELECT typbasetype INTO base FROM pg_type WHERE oid = type AND typtype = 'd';
        EXIT WHEN NOT FOUND;
        type := base;
    END LOOP;
    IF type NOT IN ('int8'::regtype, 'int4'::regtype, 'int2'::regtype) THEN
        RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
            MESSAGE = format('column "%s" is not of an integer type', replace(key, '"', '""')),
            DETAIL = 'IDs are stored in columns of type bigint.',
            HINT = 'Pass a column of type bigint. If the IDs are stored as text, create a view that converts them with '
                'snowflake_from_text(), and pass that view.';
    ELSIF NOT EXISTS (SELECT FROM pg_class WHERE oid = relation) THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_table',
            MESSAGE = format('relation with OID %s does not exist', relation::oid),
            HINT = 'Pass the name of an existing table.';
    ELSIF type IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_column',
            MESSAGE = (
                SELECT format('table %s has no column "%s"', CASE WHEN strpos(name, '"') > 0 THEN name ELSE '"' || name || '"' END,
                    replace(key, '"', '""'))
                FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace,
                    concat(quote_ident(nspname), '.', quote_ident(relname)) AS name
                WHERE pg_class.oid = relation
            ),
            HINT = 'Pass the name of the column that contains the IDs as argument "key".';
    END IF;
    RETURN QUERY EXECUTE format(
        'WITH found AS (
            SELECT CASE WHEN id BETWEEN 0 AND $1 THEN id & $2 END AS node, count(id) AS ids, min(id) AS first, max(id) AS last,
                count(*) - count(id) AS nulls
            FROM (SELECT (%1$I)::int8 FROM %2$s) AS ids (id) GROUP BY 1
        ), twice AS (
            SELECT id FROM (SELECT (%1$I)::int8 FROM %2$s) AS ids (id) WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1
        ), problems AS (
            SELECT 1 AS n, ''duplicate'' AS problem, CASE WHEN id BETWEEN 0 AND $1 THEN id & $2 END AS node, count(*) AS ids,
                min(id) AS first, max(id) AS last
            FROM twice GROUP BY 3
            UNION ALL
            SELECT 2, ''in the future'', id & $2, count(*), min(id), max(id)
            FROM (SELECT (%1$I)::int8 FROM %2$s) AS ids (id) WHERE id >= $3 AND id <= $1 GROUP BY 3
            UNION ALL
            SELECT 3, ''unexpected worker'', node, ids, first, last FROM found
            WHERE node IS NOT NULL AND NOT EXISTS (SELECT FROM unnest($4) AS known WHERE known = (node >> $5) & $6)
            UNION ALL
            SELECT 4, ''not an ID'', NULL, ids, first, last FROM found WHERE node IS NULL AND ids > 0
            UNION ALL
            SELECT 5, ''null'', NULL, nulls, NULL, NULL FROM found WHERE node IS NULL AND nulls > 0
        )
        SELECT problem, CASE WHEN $8 > 0 THEN ((node >> $7) & $8)::int4 END, CASE WHEN $6 > 0 THEN ((node >> $5) & $6)::int4 END,
            ids, first, last
        FROM problems ORDER BY n, problems.node', key, relation::text)
    USING (format).last_id, node, future, workers, (format).worker_shift, (format).worker_max, (format).datacenter_shift,
        (format).datacenter_max;
END
$$;

-- A server can issue IDs ahead of its clock by at most one window plus the largest max_ahead, which are 10 s each. The bound is
-- calculated once, before the table is read, so that it is the same for all rows.
CREATE OR REPLACE FUNCTION snowflake_check(relation regclass, key text DEFAULT 'id', workers integer[] DEFAULT NULL)
    RETURNS TABLE (problem text, datacenter_id integer, worker_id integer, ids bigint, first_id bigint, last_id bigint)
    LANGUAGE sql STABLE PARALLEL RESTRICTED
BEGIN ATOMIC
    SELECT * FROM snowflake_portable_check(relation, key, workers, snowflake_portable_own(),
        snowflake_first_id_from(clock_timestamp() + interval '20 seconds'), snowflake_portable_shown(key));
END;
