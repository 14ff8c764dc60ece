//! A backup is restored on another host, while the old server runs or after it has failed.

use cluster::{Answer, Boot, Cluster, SPARSE_LAYOUT, Stop, assert_caught, check_unique, draw_above, ensure};

use crate::pgbackrest::hosts::{BackupHosts, Lost, beside, block, compare, number, psql, section, wait_for_end};

/// The worker ID of the old server, where its restore brings it to the copy.
const ALTERED: &str = "ALTER SYSTEM SET snowflake_pg.worker_id = 1";

/// Restores a server on `db2` as the page says. `numbered` says whether it gets a worker ID as the page says.
fn restore_copy(hosts: &BackupHosts, lost: &Lost, numbered: bool) -> Result<Cluster, String> {
    let mut recipe = section("Restore on another host while the old server runs");
    let mut db2 = hosts.builder("db2").empty();
    hosts.configure("db2", &block("Set up the repository", "ini db1"))?;
    hosts.shell("db2", &lost.at(&recipe.block("sh db2")))?;
    let change = recipe.block("sh db2");
    if numbered {
        hosts.shell("db2", &change)?;
        let [show, shown] = recipe.rest(["sh db2", "text"]);
        compare(&hosts.shell("db2", &show)?, &shown)?;
    }
    db2.start();
    wait_for_end(&db2)?;
    ensure!(db2.connect().one::<String>("SHOW archive_mode") == "off", "the copy archives");
    Ok(db2)
}

#[test]
fn a_copy_with_its_own_worker_id_repeats_nothing_beside_the_old_server() {
    let hosts = BackupHosts::new("copy");
    let mut db1 = hosts.prepare(hosts.builder("db1"), "snowflake_pg.worker_id = 1").unwrap();
    db1.connect().batch_execute(ALTERED).unwrap();
    db1.restart(Stop::Fast);
    hosts.back_up().unwrap();
    let lost = Lost::issue(&db1).unwrap();

    let left = restore_copy(&hosts, &lost, false).unwrap();
    assert_eq!(number(&left), "1");
    assert_caught(check_unique(&mut beside(&db1, &left)), "IDs came twice");
    drop(left);

    let copy = restore_copy(&hosts, &lost, true).unwrap();
    assert_eq!((number(&db1), number(&copy)), ("1".into(), "2".into()));
    let mut ids = [lost.ids, beside(&db1, &copy)].concat();
    check_unique(&mut ids).unwrap();
}

#[test]
fn servers_that_are_restored_elsewhere_get_worker_ids_from_the_registry() {
    let hosts = BackupHosts::new("away");
    let machines = [1, 2, 3].map(|n| Boot::new(&format!("pgbackrest_away_{n}")));
    let registry = Cluster::builder("pgbackrest_away_registry").start_registry(SPARSE_LAYOUT);
    let on = |host: &str, n: usize| hosts.with_registry(host, &registry).on(&machines[n - 1]);
    let mut db1 = hosts.set_up(on("db1", 1)).unwrap();
    let lost = Lost::issue(&db1).unwrap();
    let mut ids = lost.ids.clone();

    let configuration = block("Set up the repository", "ini db1");
    let mut db2 = on("db2", 2).empty();
    hosts.configure("db2", &configuration).unwrap();
    let mut copy = section("Restore on another host while the old server runs");
    hosts.shell("db2", &lost.at(&copy.block("sh db2"))).unwrap();
    db2.start();
    wait_for_end(&db2).unwrap();
    db2.wait_for_ids();
    ids.extend(beside(&db1, &db2));
    let workers = [&db1, &db2].map(number);
    assert_ne!(workers[0], workers[1]);
    assert!(!db1.log().contains("a copy of this server"), "{}", db1.log());
    drop(db2);

    // The old server fails, with all its files.
    db1.stop(Stop::Immediate);
    let mut gone = section("Replace a server that is gone");
    let mut db3 = on("db3", 3).empty();
    hosts.configure("db3", &configuration).unwrap();
    hosts.shell("db3", &gone.block("sh db3")).unwrap();
    db3.set_clock_behind(&ids);
    db3.start();
    wait_for_end(&db3).unwrap();
    db3.wait_for_ids();
    let (status, shown) = (gone.block("sql registry"), gone.block("text"));
    compare(&psql(&db3, &status).unwrap().replace("2 |", "1 |"), &shown).unwrap();
    assert!(!workers.contains(&number(&db3)));
    let mark = db3.shown_mark();
    ids.extend(draw_above(&mut db3.connect(), mark));
    check_unique(&mut ids).unwrap();
}

/// What is done with a server that replaces one that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplacementStep {
    Nothing,
    /// The mark is set above what is in the archive, and what applications know is forgotten.
    ArchivedMark,
    /// The mark is set as the page says.
    HighestMark,
}

/// A server that has failed. It has issued IDs after the time to which it is restored, and IDs after it archived its last WAL file.
struct Gone {
    hosts: BackupHosts,
    lost: Lost,
    /// The last mark in the archive.
    archived: i64,
    ids: Vec<i64>,
    /// Another server whose database contains the IDs.
    elsewhere: Cluster,
}

impl Gone {
    fn new(test: &str) -> Result<Gone, String> {
        let hosts = BackupHosts::new(test);
        let mut db1 = hosts.set_up(hosts.builder("db1").set("snowflake_pg.worker_id", "1"))?;
        let lost = Lost::issue(&db1)?;
        let archived = db1.shown_mark();
        let unarchived = draw_above(&mut db1.connect(), archived);
        db1.stop(Stop::Immediate);
        let ids = [lost.ids.clone(), unarchived].concat();
        let elsewhere = hosts.builder("elsewhere").set("snowflake_pg.worker_id", "9").start();
        let values = ids.iter().map(|id| format!("({id})")).collect::<Vec<_>>().join(",");
        let known = format!("CREATE TABLE orders (id bigint PRIMARY KEY); INSERT INTO orders VALUES {values}");
        elsewhere.session().batch_execute(&known).map_err(|error| error.to_string())?;
        Ok(Gone { hosts, lost, archived, ids, elsewhere })
    }

    /// Replaces the server. The new server does not archive, so that the server can be replaced again.
    fn replace(&self, host: &str, done: ReplacementStep) -> Result<(), String> {
        let mut ids = self.ids.clone();
        let mut server = self.hosts.builder(host).set("snowflake_pg.worker_id", "1").empty();
        self.hosts.configure(host, &block("Set up the repository", "ini db1"))?;
        let earlier = block("Restore in place to an earlier time", "sh db1");
        let earlier = earlier.lines().nth(1).expect("the second command").replace("--delta", "--archive-mode=off");
        self.hosts.shell(host, &self.lost.at(&earlier))?;
        server.set_clock_behind(&ids);
        server.start();
        wait_for_end(&server)?;
        if done != ReplacementStep::Nothing {
            self.set_mark(host, &server, done)?;
        }
        server.set_clock_behind(&ids);
        ids.extend(draw_above(&mut server.connect(), self.archived));
        check_unique(&mut ids)
    }

    fn set_mark(&self, host: &str, server: &Cluster, done: ReplacementStep) -> Result<(), String> {
        let infos =
            ["sh db3", "sql registry", "text", "sh wal", "text", "sql wal", "text", "sql elsewhere", "sql mark"];
        let [_, _, _, search, lsn, convert, shown, maximum, set] = section("Replace a server that is gone").rest(infos);

        let log = server.log();
        let (_, file) = log.rsplit_once("restored log file \"").expect("WAL files are restored");
        let (file, _) = file.split_once('"').expect("a quoted name");
        let example = "000000010000000000000005";
        ensure!(search.contains(example), "the page's WAL file is another");
        let roident = "SELECT roident = 1 FROM pg_replication_origin WHERE roname = 'snowflake_pg'";
        ensure!(server.connect().one::<bool>(roident), "the origin has another number");
        let found = self.hosts.shell(host, &search.replace(example, file))?;
        compare(&found, &lsn)?;
        let converted = psql(server, &convert.replace(lsn.trim(), found.trim()))?;
        compare(&converted, &shown)?;
        let mark = number_in(&converted);
        ensure!(mark == self.archived, "found {mark}, but {} is archived", self.archived);
        let highest = number_in(&psql(&self.elsewhere, &maximum)?);
        ensure!(Some(&highest) == self.ids.iter().max() && highest > mark, "{highest} is not the highest ID");

        let highest = if done == ReplacementStep::HighestMark { highest } else { mark };
        let set = set.replace("2124459828209254400", &mark.to_string());
        psql(server, &set.replace("2124459828209254401", &highest.to_string())).map(drop)
    }
}

/// Returns the number that psql has printed.
fn number_in(printed: &str) -> i64 {
    printed.split_whitespace().find_map(|word| word.parse().ok()).expect("a number")
}

#[test]
fn a_server_that_replaces_a_lost_one_begins_above_its_highest_id() {
    let gone = Gone::new("gone").unwrap();
    gone.replace("db3", ReplacementStep::HighestMark).unwrap();
    assert_caught(gone.replace("db4", ReplacementStep::Nothing), "IDs came twice");
    assert_caught(gone.replace("db5", ReplacementStep::ArchivedMark), "IDs came twice");
}
