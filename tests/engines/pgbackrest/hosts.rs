//! The hosts on which the blocks of docs/pgbackrest.md are typed.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

pub use cluster::PATIENCE;
use cluster::{Answer, Builder, Cluster, Host, Recipe, Scratch, draw_above, draw_beside, ensure, typed, within};

pub const PAGE: &str = "docs/pgbackrest.md";

/// The values that the page declares to be examples.
const DATA: &str = "/srv/pg/data";
const REPOSITORY: &str = "/srv/pgbackrest";
const TIME: &str = "2026-11-22 18:00:00+00";

/// Returns the section of the page with this heading.
pub fn section(title: &str) -> Recipe {
    Recipe::of(PAGE, title)
}

/// Returns the first block of a section with this language and place after its fence.
pub fn block(title: &str, info: &str) -> String {
    let section = cluster::sections(&cluster::page(PAGE)).into_iter().find(|section| section.title == title);
    let mut blocks = section.expect("a section of the page").blocks.into_iter();
    blocks.find(|(found, _)| found == info).expect("a block of the section").1
}

/// The hosts of a test, with a directory for the repository and for what is outside of the data directories.
pub struct BackupHosts {
    test: String,
    directory: Scratch,
}

impl BackupHosts {
    pub fn new(test: &str) -> BackupHosts {
        BackupHosts { test: format!("pgbackrest_{test}"), directory: Scratch::new(&format!("pgbackrest_{test}.etc")) }
    }

    fn name(&self, host: &str) -> String {
        format!("{}_{host}", self.test)
    }

    /// Returns the directory of a host that is outside of its data directory. Each host has its own.
    fn outside(&self, host: &str) -> PathBuf {
        self.directory.0.join(host)
    }

    /// Configures the server of this host, which issues few IDs a second, so that IDs that it repeats are found for certain. What the
    /// page is about is configured by the blocks of the page.
    pub fn builder(&self, host: &str) -> Builder {
        let plain = Cluster::builder(&self.name(host)).unset("snowflake_pg.worker_id").sparse();
        self.environment(host).into_iter().fold(plain, |builder, (name, value)| builder.env(name, &value))
    }

    /// Returns the environment of the programs on a host: `pgbackrest` is in the path, and reads the configuration of the host.
    fn environment(&self, host: &str) -> Vec<(&'static str, String)> {
        let program = Host::get().debian_program("pgbackrest").expect("scripts/setup engines provides pgbackrest");
        let programs = Path::new(program.get_program()).parent().expect("a directory").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let file = |name: &str| self.outside(host).join(name).display().to_string();
        vec![
            ("PATH", format!("{}:{programs}:{path}", Host::get().installation().bin.display())),
            ("PGBACKREST_CONFIG", file("pgbackrest.conf")),
            ("PGBACKREST_LOCK_PATH", file("lock")),
            ("PGBACKREST_LOG_PATH", file("log")),
            ("PGBACKREST_SPOOL_PATH", file("spool")),
            // A test waits for nothing but the restore.
            ("PGBACKREST_COMPRESS_TYPE", "none".into()),
            // A restore without recovery needs the WAL that was written during the backup.
            ("PGBACKREST_ARCHIVE_COPY", "y".into()),
        ]
    }

    /// Returns a block as it is typed on a host: with the paths of the test.
    fn here(&self, host: &str, text: &str) -> String {
        let data = Host::get().dir(&self.name(host)).display().to_string();
        let repository = self.directory.0.join("repository").display().to_string();
        text.replace(DATA, &data).replace(REPOSITORY, &repository)
    }

    /// Types a block into a shell on a host. Each command of the block must succeed.
    pub fn shell(&self, host: &str, text: &str) -> Result<String, String> {
        let directory = self.outside(host).display().to_string();
        let mut shell = Host::get().shell(&format!("set -e\nmkdir -p {directory}\n{}", self.here(host, text)));
        shell.envs(self.environment(host));
        typed(shell, "").map_err(|error| format!("{text}\n{error}"))
    }

    /// Writes the configuration of pgBackRest on a host.
    pub fn configure(&self, host: &str, text: &str) -> Result<(), String> {
        self.shell(host, "")?;
        let socket = Host::get().socket_dir(&self.name(host)).display().to_string();
        let reached = format!("pg1-socket-path={socket}\npg1-user=postgres\n");
        Host::get().write(&self.outside(host).join("pgbackrest.conf"), &format!("{}{reached}", self.here(host, text)));
        Ok(())
    }

    /// Configures the server of this host to get its worker ID from a registry. Its heartbeats are a second apart.
    pub fn with_registry(&self, host: &str, registry: &Cluster) -> Builder {
        let string = format!("host={} port=5432 user=postgres dbname=postgres", registry.socket().display());
        self.builder(host).set("snowflake_pg.registry", &string).set("snowflake_pg.lease", "10min")
    }

    /// Sets up the repository as the page says, and starts the server of the host `db1`, which archives into it.
    pub fn set_up(&self, db1: Builder) -> Result<Cluster, String> {
        let server = self.prepare(db1, "")?;
        self.back_up()?;
        Ok(server)
    }

    /// Starts the server of the host `db1` as the page says, with these additional lines in its `postgresql.conf`.
    pub fn prepare(&self, db1: Builder, lines: &str) -> Result<Cluster, String> {
        let mut server = db1.create();
        server.append(lines);
        self.start_archiving(&mut server)?;
        let mut session = server.session();
        let orders = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text NOT NULL)";
        session.batch_execute(orders).map_err(|error| error.to_string())?;
        // A registry needs a moment to assign a worker ID.
        let inserted = || session.batch_execute("INSERT INTO orders (customer) VALUES ('before')").is_ok();
        ensure!(within(PATIENCE, inserted), "no IDs:\n{}", server.log());
        Ok(server)
    }

    /// Starts the server of the host `db1`, which archives as the page says.
    pub fn start_archiving(&self, db1: &mut Cluster) -> Result<(), String> {
        db1.append(&self.here("db1", &block("Set up the repository", "conf db1")));
        self.configure("db1", &block("Set up the repository", "ini db1"))?;
        db1.try_start()
    }

    /// Writes the configuration of the host `backup`. Here, it is the same host as `db1` and `db2`, so that pgBackRest connects to
    /// their sockets.
    pub fn configure_backup(&self, text: &str) -> Result<(), String> {
        self.shell("backup", "")?;
        let mut lines = Vec::new();
        for line in text.lines().filter(|line| !line.contains("-host=")) {
            let host = if line.starts_with("pg2") { "db2" } else { "db1" };
            lines.push(self.here(host, line));
            if let Some((server, _)) = line.split_once("-path=").filter(|(server, _)| server.starts_with("pg")) {
                let socket = Host::get().socket_dir(&self.name(host));
                lines.push(format!("{server}-socket-path={}\n{server}-user=postgres", socket.display()));
            }
        }
        Host::get().write(&self.outside("backup").join("pgbackrest.conf"), &lines.join("\n"));
        Ok(())
    }

    /// Makes the backups of the page, and waits until the last one can be restored.
    pub fn back_up(&self) -> Result<(), String> {
        let [_, _, create, back_up] =
            section("Set up the repository").rest(["conf db1", "ini db1", "sh db1", "sh db1"]);
        self.shell("db1", &create)?;
        self.shell("db1", &back_up)?;
        wait_for_next_second();
        Ok(())
    }
}

/// pgBackRest restores a backup that ended in an earlier second than the target.
pub fn wait_for_next_second() {
    let second = || SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs();
    let now = second();
    assert!(within(PATIENCE, || second() > now + 1), "the clock stands still");
}

/// What a server that is restored to an earlier time does not know.
pub struct Lost {
    /// The time to which the server is restored.
    pub target: String,
    /// The mark at this time.
    pub mark: i64,
    /// The IDs that were issued later.
    pub ids: Vec<i64>,
}

impl Lost {
    /// Lets the server issue IDs after a time to which it can be restored, and waits until they are archived.
    pub fn issue(server: &Cluster) -> Result<Lost, String> {
        let mut session = server.connect();
        let target = session.one("SELECT clock_timestamp()::text");
        // The recovery ends before this commit.
        let mut ids = session.all("INSERT INTO orders (customer) VALUES ('after') RETURNING id");
        let mark = server.shown_mark();
        ids.extend(draw_above(&mut session, mark));
        wait_for_archive(server)?;
        Ok(Lost { target, mark, ids })
    }

    /// Returns a block of the page with this time.
    pub fn at(&self, block: &str) -> String {
        assert!(block.contains(TIME), "the page's time is another");
        block.replace(TIME, &self.target)
    }
}

/// Waits until all WAL that was written before this call is in the repository.
pub fn wait_for_archive(server: &Cluster) -> Result<(), String> {
    let mut session = server.connect();
    let wal: String = session.one("SELECT pg_walfile_name(pg_switch_wal())");
    let archived = format!("SELECT coalesce(last_archived_wal >= '{wal}', false) FROM pg_stat_archiver");
    ensure!(within(PATIENCE, || session.one(&archived)), "{wal} is not archived:\n{}", server.log());
    Ok(())
}

/// Lets two servers issue IDs for the same five seconds.
pub fn beside(one: &Cluster, other: &Cluster) -> Vec<i64> {
    draw_beside(&mut one.connect(), &mut other.connect())
}

/// Waits until the recovery of a server has ended.
pub fn wait_for_end(server: &Cluster) -> Result<(), String> {
    let ended = || !server.connect().one::<bool>("SELECT pg_is_in_recovery()");
    ensure!(within(PATIENCE, ended), "not restored:\n{}", server.log());
    Ok(())
}

/// Types a block into psql.
pub fn psql(server: &Cluster, text: &str) -> Result<String, String> {
    typed(server.psql(), text)
}

/// Checks that a program has printed what the page shows, except for long numbers.
pub fn compare(printed: &str, shown: &str) -> Result<(), String> {
    let long = |word: &str| word.len() >= 10 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '/');
    let word = |word: &str| if long(word) { "*".into() } else { word.into() };
    cluster::compare(&printed.replace('\n', " "), &shown.replace('\n', " "), word)
}

/// Returns the worker ID of a server.
pub fn number(server: &Cluster) -> String {
    server.connect().one("SHOW snowflake_pg.worker_id")
}
