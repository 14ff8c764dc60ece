//! Streaming replication: each host has a worker ID that is kept outside the data directory. A primary and the standby that takes
//! over from it issue IDs at the same time, also after the old primary was rewound. Their IDs differ only in the worker ID.

use std::path::Path;

use cluster::{Answer, Builder, Stop, assert_caught, check_unique, ensure, within};

use crate::worker_ids::page::{PATIENCE, PageHost, section};

/// Where the worker ID is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkerSetting {
    /// In an included file, as the page says.
    Included,
    /// On the command line, which is the page's alternative.
    CommandLine,
    /// In `postgresql.conf`, as copied by the base backup.
    PostgresqlConf,
    /// In `postgresql.conf`, which is corrected on the standby before its first start.
    PostgresqlConfOfEach,
    /// Set by `ALTER SYSTEM` on the primary, in addition to the page's file.
    AlterSystem,
}

/// The two hosts, the command that starts their servers, and what was observed.
struct StreamingStory {
    kept: WorkerSetting,
    db1: PageHost,
    db2: PageHost,
    start: String,
    /// The worker IDs that the hosts had: the moment, the host and the worker ID.
    found: Vec<(&'static str, &'static str, i32)>,
    /// The IDs that were received in each act.
    acts: Vec<Vec<i64>>,
}

impl StreamingStory {
    fn start(&mut self, host: &str) -> Result<(), String> {
        let machine = if host == "db1" { &mut self.db1 } else { &mut self.db2 };
        machine.localize();
        match self.kept {
            WorkerSetting::CommandLine => machine.start_by(&self.start, &[]),
            _ => machine.server.try_start(),
        }
    }

    /// Records the worker ID of a host, and checks where this worker ID is set.
    fn look(&mut self, when: &'static str, host: &'static str) {
        let machine = if host == "db1" { &self.db1 } else { &self.db2 };
        let (worker, source, file) = machine.origin();
        let within = file.is_some_and(|file| Path::new(&file).starts_with(machine.server.dir()));
        let expected = match self.kept {
            WorkerSetting::CommandLine => ("command line", false),
            WorkerSetting::Included => ("configuration file", false),
            _ => ("configuration file", true),
        };
        assert_eq!((source.as_str(), within), expected, "{when} {host}");
        self.found.push((when, host, worker.parse().expect("a number")));
    }

    /// Lets both servers issue IDs for the same three seconds. The server whose IDs begin later issues first, because it may take
    /// a second until the other server begins.
    fn act(&mut self, later: &'static str) -> Result<(), String> {
        let (later, earlier) = if later == "db1" { (&self.db1, &self.db2) } else { (&self.db2, &self.db1) };
        let mut ids = later.insert(PER_SECOND * 3)?;
        let until = ids[ids.len() - 1];
        while ids[ids.len() - 1] >> WORKER_AND_SEQUENCE <= until >> WORKER_AND_SEQUENCE {
            ids.extend(earlier.insert(1)?);
        }
        self.acts.push(ids);
        Ok(())
    }
}

/// Lets a server issue only a few IDs a second, up to ten seconds ahead of the clock. Therefore, each server issues IDs for all
/// of the time in question.
fn like(builder: Builder) -> Builder {
    builder
        .set("snowflake_pg.layout", "31:28:4@1s")
        .set("snowflake_pg.max_ahead", "10s")
        .set("wal_retrieve_retry_interval", "100ms")
}

const PER_SECOND: usize = 16;
const WORKER_AND_SEQUENCE: u32 = 32;

/// Runs everything that the page describes, from the first primary to the rewound primary that takes over again.
fn play(test: &str, kept: WorkerSetting) -> Result<StreamingStory, String> {
    let mut recipe = section("Streaming replication");
    let mut instead = section("On the command line instead");
    let mut story = StreamingStory {
        kept,
        db1: PageHost::new(test, "db1", like),
        db2: PageHost::without_data(test, "db2", like),
        start: String::new(),
        found: Vec::new(),
        acts: Vec::new(),
    };
    for host in ["sh db1", "sh db2"] {
        let (included, named) = (recipe.block(host), instead.block(host));
        let machine = if host == "sh db1" { &story.db1 } else { &story.db2 };
        machine.shell(if kept == WorkerSetting::CommandLine { &named } else { &included })?;
    }
    story.start = instead.block("sh start");
    assert!(instead.is_empty());

    let configuration = recipe.block("conf db1");
    let include = configuration.lines().find(|line| line.starts_with("include")).expect("an include").to_string();
    story.db1.configure(&match kept {
        WorkerSetting::Included | WorkerSetting::AlterSystem => configuration,
        WorkerSetting::CommandLine => configuration.replace(&include, ""),
        WorkerSetting::PostgresqlConf | WorkerSetting::PostgresqlConfOfEach => {
            configuration.replace(&include, "snowflake_pg.worker_id = 1")
        }
    });
    story.start("db1")?;
    if kept == WorkerSetting::AlterSystem {
        story.db1.psql("ALTER SYSTEM SET snowflake_pg.worker_id = 1")?;
        story.db1.server.restart(Stop::Fast);
    }
    story.db1.psql(
        "CREATE EXTENSION snowflake_pg;
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text NOT NULL)",
    )?;
    story.acts.push(story.db1.insert(PER_SECOND)?);
    story.look("at first", "db1");

    story.db2.shell(&recipe.block("sh db2"))?;
    if kept == WorkerSetting::PostgresqlConfOfEach {
        let own = "s/^snowflake_pg.worker_id = 1/snowflake_pg.worker_id = 2/";
        story.db2.shell(&format!("sed -i '{own}' /srv/pg/data/postgresql.conf"))?;
    }
    story.start("db2")?;
    story.look("as standby", "db2");
    wait_for(&story.db1, &story.db2);

    // The old primary continues to run, and does not know of the new primary.
    story.db2.psql(&recipe.block("sql db2"))?;
    story.act("db2")?;
    let (old, new) = (rows(&story.db1), rows(&story.db2));
    ensure!(
        old.iter().any(|row| !new.contains(row)) && new.iter().any(|row| !old.contains(row)),
        "nothing has diverged"
    );

    story.db1.server.stop(Stop::Immediate);
    // The mark is carried over, and then the server is rewound.
    story.db1.shell(&recipe.block("sh db1"))?;
    story.db1.shell(&recipe.block("sh db1"))?;
    assert!(recipe.is_empty());
    story.start("db1")?;
    wait_for(&story.db2, &story.db1);
    ensure!(rows(&story.db1) == new, "the rewound server has other rows than the one it follows");
    story.look("rewound", "db1");

    story.db1.server.promote();
    story.act("db1")?;
    story.look("at last", "db1");
    story.look("at last", "db2");
    Ok(story)
}

fn rows(machine: &PageHost) -> Vec<String> {
    machine.server.connect().all("SELECT orders::text FROM orders ORDER BY id")
}

/// Waits until a standby has replayed all WAL that its primary has written.
fn wait_for(primary: &PageHost, standby: &PageHost) {
    let written: String = primary.server.connect().one("SELECT pg_current_wal_lsn()::text");
    let mut session = standby.server.connect();
    assert!(session.one::<bool>("SELECT pg_is_in_recovery()"), "not a standby");
    let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'");
    assert!(within(PATIENCE, || session.one(&replayed)), "the standby does not follow:\n{}", standby.server.log());
}

/// Checks that each host always had the same worker ID, and that no ID was issued twice.
fn check(seen: &StreamingStory) -> Result<(), String> {
    for (when, host, worker) in &seen.found {
        let own = if *host == "db1" { 1 } else { 2 };
        ensure!(*worker == own, "{host} has worker ID {worker} {when}");
    }
    ensure!(seen.found.len() == 5 && seen.acts.len() == 3, "not all was seen");
    // Without the worker ID, the servers have issued the same IDs. Only the worker ID keeps their IDs apart.
    let mut others = seen.acts.concat().iter().map(|id| id >> WORKER_AND_SEQUENCE << 4 | id & 15).collect::<Vec<_>>();
    ensure!(check_unique(&mut others).is_err(), "the servers issued at different times, which shows nothing");
    check_unique(&mut seen.acts.concat())
}

#[test]
fn hosts_keep_their_numbers_in_a_file_that_is_included() {
    check(&play("included", WorkerSetting::Included).unwrap()).unwrap();
}

#[test]
fn hosts_keep_their_numbers_on_the_command_line() {
    check(&play("started", WorkerSetting::CommandLine).unwrap()).unwrap();
}

#[test]
fn a_base_backup_brings_the_number_in_postgresql_conf() {
    let seen = play("copied", WorkerSetting::PostgresqlConf).unwrap();
    assert!(seen.found.iter().all(|(_, _, worker)| *worker == 1), "{:?}", seen.found);
    assert_caught(check_unique(&mut seen.acts[..2].concat()), "IDs came twice");
    assert_caught(check(&seen), "db2 has worker ID 1 as standby");
}

#[test]
fn a_base_backup_brings_the_number_of_alter_system() {
    let seen = play("altered", WorkerSetting::AlterSystem).unwrap();
    assert!(seen.found.iter().all(|(_, _, worker)| *worker == 1), "{:?}", seen.found);
    assert_caught(check_unique(&mut seen.acts[..2].concat()), "IDs came twice");
}

#[test]
fn a_rewound_server_has_the_number_in_the_postgresql_conf_of_its_source() {
    let seen = play("rewound", WorkerSetting::PostgresqlConfOfEach).unwrap();
    let expected = [
        ("at first", "db1", 1),
        ("as standby", "db2", 2),
        ("rewound", "db1", 2),
        ("at last", "db1", 2),
        ("at last", "db2", 2),
    ];
    assert_eq!(seen.found, expected);
    check_unique(&mut seen.acts[..2].concat()).unwrap();
    assert_caught(check_unique(&mut seen.acts.concat()), "IDs came twice");
    assert_caught(check(&seen), "db1 has worker ID 2 rewound");
}

#[test]
fn a_host_without_its_file_does_not_start() {
    let host = || PageHost::new("fileless", "db1", |builder| builder);
    let mut recipe = section("Streaming replication");
    let (_, _, configuration) = (recipe.block("sh db1"), recipe.block("sh db2"), recipe.block("conf db1"));
    let mut included = host();
    included.configure(&configuration);
    assert_caught(included.server.try_start(), "could not open configuration file");
    drop(included);
    let mut instead = section("On the command line instead");
    let (_, _, start) = (instead.block("sh db1"), instead.block("sh db2"), instead.block("sh start"));
    let mut named = host();
    named.configure("shared_preload_libraries = 'snowflake_pg'");
    let log = "invalid value for parameter \"snowflake_pg.worker_id\": \"\"";
    assert_caught(named.start_by(&start, &[]), log);
}
