//! Compares SQL functions with `tests/vectors.json`.

use std::fs;

use cluster::{Answer, Client, ensure, repository};

/// The vectors as tables, and two functions that try a statement.
const TABLES: &str = "
    CREATE TEMP TABLE layouts AS
        SELECT * FROM jsonb_to_recordset(current_setting('test.vectors')::jsonb -> 'layouts') AS layout
            (name text, bits text, epoch timestamptz, tick_ms bigint, datacenter_id text, worker_id text, sequence text,
             last_id bigint);
    CREATE TEMP TABLE ids AS
        SELECT id, layout, epoch, datacenter_id, worker_id, sequence, text, min_id, max_id,
            -- PostgreSQL writes no sign before a year.
            regexp_replace(created_at, '^\\+0*', '') AS created_at, created_at ~ '^\\+0*[3-9]\\d{5}|^\\+\\d{7}' AS beyond
        FROM jsonb_to_recordset(current_setting('test.vectors')::jsonb -> 'ids') AS vector
            (id bigint, layout text, epoch timestamptz, created_at text, datacenter_id integer, worker_id integer,
             sequence integer, text text, min_id bigint, max_id bigint);
    CREATE TEMP TABLE spellings AS
        SELECT * FROM jsonb_to_recordset(current_setting('test.vectors')::jsonb -> 'spellings') AS spelling
            (text text, id bigint);
    CREATE TEMP TABLE errors AS
        SELECT * FROM jsonb_to_recordset(current_setting('test.vectors')::jsonb -> 'errors') AS error
            (call text, layout text, epoch timestamptz, id text, text text, created_at text, datacenter_id bigint,
             worker_id bigint, sequence bigint, expected text);
    -- What a query returns, or the SQLSTATE of its error.
    CREATE FUNCTION pg_temp.result(query text) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE result text;
        BEGIN
            EXECUTE query INTO result;
            RETURN result;
        EXCEPTION WHEN OTHERS THEN
            RETURN 'error ' || SQLSTATE;
        END $$;
";

/// Queries that return a line for each vector that is wrong.
const COMPARISONS: [(&str, &str); 7] = [
    (
        "the named layouts",
        "SELECT concat_ws(' ', known, layout) FROM layouts AS layout FULL JOIN snowflake_layouts AS known USING (name)
         WHERE (known.bits, known.epoch, known.tick, known.datacenter_id, known.worker_id, known.sequence) IS DISTINCT FROM
             (layout.bits, layout.epoch, layout.tick_ms * interval '1 ms', layout.datacenter_id, layout.worker_id,
              layout.sequence)
             OR last_id IS DISTINCT FROM snowflake_max_id(last_instant, name)",
    ),
    (
        "the parts of an ID",
        "SELECT concat_ws(' ', found, ids) FROM ids, LATERAL (
             SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') AS created_at, datacenter_id,
                 worker_id, sequence
             FROM snowflake_decode(id, layout, epoch)
         ) AS found
         WHERE NOT beyond AND (found.created_at, found.datacenter_id, found.worker_id, found.sequence)
             IS DISTINCT FROM (ids.created_at, ids.datacenter_id, ids.worker_id, ids.sequence)",
    ),
    (
        "the ID of parts, and the IDs of an instant",
        "SELECT concat_ws(' ', found, ids) FROM ids, LATERAL (
             SELECT created_at::timestamptz AS at WHERE NOT beyond
         ) AS instant, LATERAL (
             SELECT snowflake_encode(at, coalesce(worker_id, 0), sequence, coalesce(datacenter_id, 0), layout, epoch) AS id,
                 snowflake_min_id(at, layout, epoch) AS min_id, snowflake_max_id(at, layout, epoch) AS max_id
         ) AS found
         WHERE (found.id, found.min_id, found.max_id) IS DISTINCT FROM (ids.id, ids.min_id, ids.max_id)",
    ),
    (
        "a named layout, its bits with its epoch, and bits with Twitter's epoch",
        "SELECT concat_ws(' ', ids) FROM ids LEFT JOIN layouts ON name = layout
         WHERE NOT beyond AND (
             (name IS NOT NULL AND snowflake_decode(id, layout) IS DISTINCT FROM snowflake_decode(id, bits, layouts.epoch))
             OR (coalesce(name = 'twitter', ids.epoch = '2010-11-04 01:42:54.657Z')
                 AND snowflake_decode(id, layout) IS DISTINCT FROM snowflake_decode(id, layout, ids.epoch)))",
    ),
    (
        "texts",
        "SELECT concat_ws(' ', ids) FROM ids WHERE (snowflake_to_text(id)::text, snowflake_from_text(text)) <> (text, id)
         UNION ALL
         SELECT concat_ws(' ', spellings) FROM spellings WHERE snowflake_from_text(text) <> id",
    ),
    (
        "times that timestamptz does not have",
        "SELECT concat_ws(' ', found, ids) FROM ids,
             pg_temp.result(format('SELECT snowflake_decode(%s, %L, %L)', id, layout, epoch)) AS found
         WHERE beyond AND found <> 'error 22008'",
    ),
    (
        "errors",
        "SELECT concat_ws(' ', found, query) FROM errors, LATERAL (SELECT CASE call
                 WHEN 'decode' THEN format('SELECT snowflake_decode(%L, %L, %L)', id, layout, epoch)
                 WHEN 'range' THEN format('SELECT snowflake_min_id(%L, %L, %L)', replace(created_at, '+0', ''), layout, epoch)
                 WHEN 'encode' THEN format('SELECT snowflake_encode(%L, %L, %L, %L, %L, %L)', created_at, worker_id, sequence,
                     datacenter_id, layout, epoch)
                 WHEN 'layout' THEN format('SELECT snowflake_decode(0, %L)', layout)
                 WHEN 'from_text' THEN format('SELECT snowflake_from_text(%L)', text)
                 WHEN 'to_text' THEN format('SELECT snowflake_to_text(%L)', id)
             END AS query) AS try, pg_temp.result(query) AS found
         WHERE (found LIKE 'error 22%') IS NOT TRUE OR found IN ('error 22007', 'error 22008') OR expected <> 'error'
         UNION ALL
         SELECT concat_ws(' ', found, errors) FROM errors, pg_temp.result(
             format('SELECT snowflake_max_id(%L, %L, %L)', replace(created_at, '+0', ''), layout, epoch)) AS found
         WHERE call = 'range' AND found <> 'error 22023'",
    ),
];

/// Returns the vectors.
pub fn vectors() -> String {
    fs::read_to_string(repository().join("tests/vectors.json")).expect("the file is in the repository")
}

/// Compares the functions of a session with the vectors.
pub fn check_sql(session: &mut Client, vectors: &str) -> Result<(), String> {
    session.execute("SELECT set_config('test.vectors', $1, false)", &[&vectors]).expect("a setting of any length");
    session.batch_execute(TABLES).map_err(|error| format!("{error:?}"))?;
    let counted: String = session.one("SELECT (count(*) > 400 AND bool_or(beyond))::text FROM ids");
    ensure!(counted == "true", "few vectors, or none beyond timestamptz");
    for (what, query) in COMPARISONS {
        let found: Vec<String> = session.all(query);
        ensure!(found.is_empty(), "{what}: {} are wrong, the first is {}", found.len(), found[0]);
    }
    Ok(())
}
