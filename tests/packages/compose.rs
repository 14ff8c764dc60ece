//! The file for Docker Compose: Compose and Prometheus accept the files, every file that a container mounts exists, and the scripts that
//! initialize the databases work. The tests start no container.

use std::process::Command;

use cluster::{
    Answer, Cluster, Host, PATIENCE, Scratch, assert_caught, command, ensure, not_tested, output, page, repository,
    tool, typed, within,
};

const FILE: &str = "packaging/compose.yaml";

/// Docker Compose, as a plug-in or as a program of its own. Returns `None`, and prints why, if there is neither. It needs no Docker
/// engine to read a file.
fn compose() -> Option<Command> {
    for (program, arguments) in [("docker", &["compose"][..]), ("docker-compose", &[][..])] {
        if command(program).args(arguments).arg("version").output().is_ok_and(|output| output.status.success()) {
            let mut compose = command(program);
            compose.args(arguments);
            return Some(compose);
        }
    }
    not_tested("Docker Compose is not installed");
    None
}

/// Whether a program accepts files with these names and texts.
fn check(mut program: Command, files: &[(&str, &str)]) -> Result<(), String> {
    let scratch = Scratch::new(&format!("packages_compose.{}", files[0].0));
    for (name, text) in files {
        scratch.write(name, text);
    }
    let output = program.current_dir(&scratch.0).output().expect("it has told its version");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(output.status.success(), "{said}");
    Ok(())
}

#[test]
fn compose_accepts_the_file() {
    let text = page(FILE);
    let check = |text: &str, password: &str| {
        let mut compose = compose()?;
        compose.args(["--file", "compose.yaml", "config", "--quiet"]).env("POSTGRES_PASSWORD", password);
        Some(check(compose, &[("compose.yaml", text)]))
    };
    let Some(accepted) = check(&text, "secret") else { return };
    accepted.unwrap();
    let refused = |text: &str, password: &str| check(text, password).expect("it was there before");
    assert_caught(refused(&text, ""), "set a password");
    assert_caught(
        refused(&text.replace("      registry:\n        condition", "      register:\n        condition"), "secret"),
        "register",
    );
    assert_caught(refused(&text.replace("healthcheck:", "healthcheque:"), "secret"), "healthcheque");
}

/// Whether the files that containers mount exist. Docker would create a directory in the place of one that does not.
fn check_mounts(text: &str) -> Result<(), String> {
    let mounts = text.lines().filter_map(|line| line.trim().strip_prefix("- ")).filter(|mount| mount.starts_with('.'));
    let sources: Vec<&str> = mounts.filter_map(|mount| Some(mount.split_once(':')?.0)).collect();
    ensure!(sources.len() > 4, "containers mount only {sources:?}");
    // The page makes this directory first.
    let absent = sources.iter().filter(|source| **source != "../target/compose");
    let absent = absent.map(|source| repository().join("packaging").join(source)).find(|path| !path.exists());
    ensure!(absent.is_none(), "there is no {}", absent.unwrap_or_default().display());
    Ok(())
}

#[test]
fn every_file_that_a_container_mounts_exists() {
    check_mounts(&page(FILE)).unwrap();
    assert_caught(check_mounts(&page(FILE).replace("/queries.yml", "/query.yml")), "query.yml");
    assert!(page("docs/installing.md").contains("scripts/registry target/compose\n"));
}

#[test]
fn prometheus_accepts_its_configuration() {
    let text = page("packaging/prometheus.yml");
    let check = |text: &str| {
        let mut promtool = tool("promtool");
        promtool.args(["check", "config", "prometheus.yml"]);
        check(promtool, &[("prometheus.yml", text), ("alerts.yml", &page("docs/monitoring/alerts.yml"))])
    };
    check(&text).unwrap();
    assert_caught(check(&text.replace("- alerts.yml", "- alarms.yml")), "alarms.yml");
    assert_caught(check(&text.replace("relabel_configs", "relabel_config")), "relabel_config");
}

/// Runs a script as PostgreSQL's image runs it, with the registry's script in this directory.
fn initialize(server: &Cluster, script: &str, registry: &Scratch) -> Result<(), String> {
    let text =
        page(&format!("packaging/compose/{script}")).replace("/registry/", &format!("{}/", registry.0.display()));
    let path = format!("{}:{}", Host::get().installation().bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut bash = server.client(command("bash"));
    bash.args(["-c", &text]).env("PATH", path).env("POSTGRES_PASSWORD", "it's secret");
    typed(bash, "").map(drop)
}

#[test]
fn the_databases_are_initialized_and_the_server_gets_a_worker_id() {
    let files = Scratch::new("packages_compose.registry");
    let registry = Cluster::builder("compose_registry").unset("shared_preload_libraries").start();
    registry.connect().batch_execute("CREATE DATABASE fleet").unwrap();
    assert_caught(initialize(&registry, "registry.sh", &files), "No such file");
    output(command(repository().join("scripts/registry")).arg(&files.0));
    initialize(&registry, "registry.sh", &files).unwrap();

    // The connection string of the file. The host is a directory here, and the role needs no password.
    let text = page(FILE);
    let given = text.lines().find_map(|line| line.trim().strip_prefix("- snowflake_pg.registry=host=registry "));
    let string = format!("host={} port=5432 {}", registry.socket().display(), given.expect("a connection string"));
    let builder = Cluster::builder("compose_server").unset("snowflake_pg.worker_id");
    let server = builder.set("snowflake_pg.registry", &string).start();
    server.connect().batch_execute("CREATE DATABASE shop").unwrap();
    initialize(&server, "server.sh", &files).unwrap();
    let mut session = server.connect_to("shop");
    let query = text.split("-XAtc '").nth(1).and_then(|rest| rest.split('\'').next()).expect("a health check");
    assert!(within(PATIENCE, || ["idle", "issuing"].contains(&session.one::<String>(query).as_str())));
    let exporter = "SELECT pg_has_role('prometheus', 'pg_monitor', 'USAGE')";
    assert!(session.one::<bool>(exporter) && registry.connect().one::<bool>(exporter));
}
