//! CREATE EXTENSION from the files that `scripts/portable` writes for dbdev, in a copy of the PostgreSQL installation.

use std::fs;
use std::path::{Path, PathBuf};

use cluster::{Answer, Host, Scratch, command, major, not_tested, output, repository};
use postgres::NoTls;

use crate::server::plain_builder;

/// Returns the program `postgres` of a copy of the installation that has the files of a directory among those of its extensions. It finds
/// all files relative to its own directory, so that only the program is copied, and the other files are linked. Returns `None`, and prints
/// why, for an installation whose parts are not known.
fn installation_with(files: &Path, scratch: &Scratch) -> Option<PathBuf> {
    let found = Host::get().installation();
    let whole: Vec<PathBuf> = if found.is_debians() {
        ["lib", "share"].map(|part| format!("/usr/{part}/postgresql/{}", major()).into()).into()
    } else if std::env::var_os("PG_CONFIG").is_none_or(|named| named.is_empty()) {
        // The libraries of the programs are in a directory beside the package.
        vec![found.bin.ancestors().nth(3).expect("scripts/setup has unpacked it").into()]
    } else {
        not_tested("the PostgreSQL of PG_CONFIG is not copied");
        return None;
    };
    let inside = |path: &Path| scratch.0.join(path.strip_prefix("/").expect("an absolute path"));
    for part in whole {
        let target = inside(&part);
        fs::create_dir_all(target.parent().expect("a path")).expect("a new directory can be written");
        let link = ["--archive", "--symbolic-link", "--no-target-directory"];
        output(command("cp").args(link).arg(&part).arg(target));
    }
    for file in fs::read_dir(files).expect("a directory") {
        let file = file.expect("an entry");
        fs::copy(file.path(), inside(&found.extensions).join(file.file_name())).expect("the copy can be written");
    }
    let program = inside(&found.bin).join("postgres");
    fs::remove_file(&program).expect("a link");
    fs::copy(found.bin.join("postgres"), &program).expect("the copy can be written");
    Some(program)
}

#[test]
fn the_files_for_dbdev_are_an_extension_that_an_owner_creates_and_drops() {
    let files = Scratch::new("portable_extension.files");
    output(command(repository().join("scripts/portable")).arg(&files.0).arg("dbdev"));
    let scratch = Scratch::new("portable_extension.installation");
    let Some(program) = installation_with(&files.0, &scratch) else { return };
    let mut server = plain_builder("extension").create();
    let mut shell = Host::get().command(Path::new("sh"));
    shell.args(["-c", "exec \"$0\" -D \"$1\""]).arg(program).arg(server.dir());
    server.try_start_by(shell).unwrap_or_else(|log| panic!("{log}"));
    let roles = "CREATE ROLE shop LOGIN; CREATE ROLE web LOGIN";
    server.connect().run(roles);
    server.connect().run("CREATE DATABASE shop OWNER shop");
    let as_role = |role: &str| server.config("shop").user(role).connect(NoTls).expect("the role can connect");

    let mut owner = as_role("shop");
    owner.run(
        "CREATE SCHEMA snowflake; GRANT USAGE ON SCHEMA snowflake TO PUBLIC;
         CREATE EXTENSION snowflake_portable SCHEMA snowflake;
         SELECT snowflake.snowflake_configure(7);
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake.snowflake_nextval())",
    );
    let version: String = owner.one("SELECT extversion FROM pg_extension WHERE extname = 'snowflake_portable'");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    let id: i64 = owner.one("INSERT INTO orders DEFAULT VALUES RETURNING id");
    assert_eq!((id >> 12) & 1023, 7);
    let mut web = as_role("web");
    assert_eq!(web.code("SELECT snowflake.snowflake_decode(1)"), None);
    assert_eq!(web.code("SELECT snowflake.snowflake_nextval()").as_deref(), Some("42501"));

    // The table uses the extension. Without the table, nothing remains.
    assert_eq!(owner.code("DROP EXTENSION snowflake_portable").as_deref(), Some("2BP01"));
    owner.run("DROP TABLE orders; DROP EXTENSION snowflake_portable");
    let left = "SELECT (SELECT count(*) FROM pg_proc WHERE pronamespace = 'snowflake'::regnamespace)
        + (SELECT count(*) FROM pg_class WHERE relnamespace = 'snowflake'::regnamespace)
        + (SELECT count(*) FROM pg_namespace WHERE nspname = 'snowflake_state')";
    assert_eq!(owner.one::<i64>(left), 0);
}
