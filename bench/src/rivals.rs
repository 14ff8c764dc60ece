//! The rivals: other ways to make a key.

use cluster::{Answer, Client};

/// A way to make a key.
pub struct Rival {
    /// The name in the tables.
    pub name: &'static str,
    /// The expression that makes a key.
    pub expression: &'static str,
    /// The type of the key.
    pub kind: &'static str,
}

impl Rival {
    /// Returns the definition of a primary key column with this default, without the column's name.
    pub fn column(&self) -> String {
        format!("{} DEFAULT {} PRIMARY KEY", self.kind, self.expression)
    }
}

const fn rival(name: &'static str, expression: &'static str, kind: &'static str) -> Rival {
    Rival { name, expression, kind }
}

const SETUP: &str = "
CREATE SEQUENCE bench_cache_1;
CREATE SEQUENCE bench_cache_32 CACHE 32;
CREATE SEQUENCE bench_cache_1000 CACHE 1000;
CREATE SEQUENCE bench_plpgsql;
CREATE FUNCTION bench_plpgsql_snowflake() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1288834974657) << 22
        | 7 << 12 | nextval('bench_plpgsql') % 4096;
END $$";

/// Returns all ways to make a key on this server, snowflakes first. Creates the objects that these ways need.
pub fn all(client: &mut Client) -> Vec<Rival> {
    client.batch_execute(SETUP).expect("the rivals can be set up");
    let mut rivals = vec![
        rival("snowflake_nextval()", "snowflake_nextval()", "bigint"),
        rival("clock_timestamp()", "clock_timestamp()", "timestamptz"),
        rival("nextval, CACHE 1", "nextval('bench_cache_1')", "bigint"),
        rival("nextval, CACHE 32", "nextval('bench_cache_32')", "bigint"),
        rival("nextval, CACHE 1000", "nextval('bench_cache_1000')", "bigint"),
        rival("gen_random_uuid()", "gen_random_uuid()", "uuid"),
        rival("PL/pgSQL snowflake", "bench_plpgsql_snowflake()", "bigint"),
    ];
    rivals.extend(others(client));
    rivals
}

/// Returns the other ways to make keys that servers do not repeat, on this server: a sequence with an offset for each server, and
/// [`installed`] ones. Creates the objects that these ways need.
pub fn others(client: &mut Client) -> Vec<Rival> {
    let sequence = "CREATE SEQUENCE IF NOT EXISTS bench_offset START 7 INCREMENT BY 16";
    client.batch_execute(sequence).expect("a sequence can be created");
    let mut rivals = vec![rival("nextval, offset 7, INCREMENT BY 16", "nextval('bench_offset')", "bigint")];
    rivals.extend(installed(client));
    rivals
}

/// Returns the ways that depend on the version and the extensions of this server: pgEdge's snowflakes, and UUIDs of version 7. Creates
/// the extensions.
pub fn installed(client: &mut Client) -> Vec<Rival> {
    let mut rivals = Vec::new();
    if offers(client, "snowflake") {
        let setup = "CREATE EXTENSION IF NOT EXISTS snowflake; CREATE SEQUENCE IF NOT EXISTS bench_pgedge";
        client.batch_execute(setup).expect("pgEdge's extension can be created");
        rivals.push(rival("pgEdge snowflake.nextval", "snowflake.nextval('bench_pgedge'::regclass)", "bigint"));
    }
    rivals.extend(time_ordered_uuids(client));
    rivals
}

/// Returns the ways to make UUIDs of version 7 on this server. Creates the extension if necessary.
fn time_ordered_uuids(client: &mut Client) -> Vec<Rival> {
    let mut rivals = Vec::new();
    if offers(client, "pg_uuidv7") {
        client.batch_execute("CREATE EXTENSION IF NOT EXISTS pg_uuidv7").expect("pg_uuidv7 can be created");
        rivals.push(rival("pg_uuidv7", "uuid_generate_v7()", "uuid"));
    }
    if client.one("SELECT to_regprocedure('pg_catalog.uuidv7()') IS NOT NULL") {
        rivals.push(rival("uuidv7()", "pg_catalog.uuidv7()", "uuid"));
    }
    rivals
}

/// Returns true if the server has the files of an extension.
pub fn offers(client: &mut Client, extension: &str) -> bool {
    client.one(&format!("SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = '{extension}')"))
}

/// A key of a table.
pub struct Key {
    /// The name in the tables.
    pub name: &'static str,
    /// The definition of the key's column, without the column's name.
    pub column: String,
}

/// Returns the keys of the tables that are filled, snowflakes first.
pub fn keys(client: &mut Client) -> Vec<Key> {
    let mut keys = vec![
        Key { name: "snowflake", column: "bigint DEFAULT snowflake_nextval() PRIMARY KEY".into() },
        Key { name: "bigserial", column: "bigserial PRIMARY KEY".into() },
        Key { name: "UUIDv4", column: "uuid DEFAULT gen_random_uuid() PRIMARY KEY".into() },
    ];
    keys.extend(installed(client).into_iter().map(|rival| Key { name: rival.name, column: rival.column() }));
    keys
}

/// Returns the names of rivals in the form that [`crate::report::Figure::new`] takes.
pub fn names(keys: &[Key]) -> Vec<&str> {
    keys.iter().map(|key| key.name).collect()
}
