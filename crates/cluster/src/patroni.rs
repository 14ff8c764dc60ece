//! A cluster that Patroni manages: etcd, and three members with the configuration that docs/patroni.md shows.

mod member;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use postgres::config::TargetSessionAttrs;
use postgres::{Client, Config, NoTls};

use crate::patience::{PATIENCE, SOON};
use crate::{Answer, Boot, Host, Scratch, Service, block_with, blocks, found_within, loopback, page, watch, within};

pub use member::PatroniMember;
use member::request;

/// The page with the configuration.
const PAGE: &str = "docs/patroni.md";

/// The names that the page gives to the members. The first address belongs to etcd.
const NAMES: [&str; 3] = ["db1", "db2", "db3"];
const FIRST_ADDRESS: u8 = 200;

/// The longest wait for several steps of Patroni, each of which takes seconds on an idle machine.
pub(crate) const STEPS: Duration = Duration::from_secs(150);

/// What the page shows, and what the tests use instead, so that a failover takes seconds. Patroni 3.2 and later do not accept a `ttl`
/// below 20. The version in Debian 12 does.
const SHORTER: [(&str, &str); 3] =
    [("ttl: 30", "ttl: 8"), ("loop_wait: 10", "loop_wait: 1"), ("retry_timeout: 10", "retry_timeout: 3")];

/// The password of the role with which the members connect to their registry.
const PASSWORD: &str = "example-secret";

/// etcd and the members of a cluster. All programs are stopped when this value is dropped, and when this process is killed.
pub struct Patroni {
    /// The members `db1`, `db2` and `db3`.
    pub members: Vec<PatroniMember>,
    etcd: Option<Service>,
    directory: Scratch,
}

/// A parameter of PostgreSQL and its value.
type Parameter = (&'static str, String);

impl Patroni {
    /// Starts a cluster with these parameters whose members get their worker IDs from the registry in the cluster itself.
    pub fn with_registry(name: &str, settings: &[(&'static str, &str)]) -> Patroni {
        let more = [("snowflake_pg.lease", "10min")];
        let settings = || more.iter().chain(settings).map(|(name, value)| (*name, (*value).into()));
        let mut patroni = Patroni::prepare(name, |common| common, |_| settings().collect());
        patroni.start();
        patroni.create_fleet();
        patroni.wait_for_workers();
        patroni
    }

    /// Starts a cluster with these parameters and without a registry. The file of each member contains the worker ID that `worker`
    /// returns for the number of the member, which is 1 for `db1`.
    pub fn with_worker_ids(name: &str, worker: impl Fn(usize) -> usize, settings: &[(&'static str, &str)]) -> Patroni {
        let own = |member: usize| {
            let settings = settings.iter().map(|(name, value)| (*name, (*value).into()));
            settings.chain([("snowflake_pg.worker_id", worker(member).to_string())]).collect()
        };
        let mut patroni = Patroni::prepare(name, |common| without_registry(&common), own);
        patroni.start();
        patroni.connect().batch_execute("CREATE EXTENSION snowflake_pg").expect("the extension is installed");
        patroni
    }

    /// Starts etcd and prepares three members with the configuration of the page. `common` changes the configuration that is the same
    /// on all members, and `local` adds parameters to the file of the member with this number, which is 1 for `db1`.
    pub fn prepare(
        name: &str,
        common: impl FnOnce(String) -> String,
        local: impl Fn(usize) -> Vec<Parameter>,
    ) -> Patroni {
        let directory = Scratch::new(&format!("{name}.patroni"));
        let member = |(number, member): (u8, &'static str)| {
            let directory = Host::get().fresh_dir(&format!("{name}.patroni/{member}"));
            watch(&directory.join("data"));
            let machine = Boot::new(&format!("{name}_{member}"));
            watch(machine.dir());
            PatroniMember { name: member, address: loopback(FIRST_ADDRESS + number), machine, directory, patroni: None }
        };
        let members = (1..).zip(NAMES).map(member).collect();
        let mut patroni = Patroni { members, etcd: None, directory };
        let shown = |language: &str, part: &str| block_with(blocks(&page(PAGE), language), part);
        let (common, own) = (common(shown("yaml common", "scope:")), shown("yaml db1", "listen:"));
        for (number, member) in (1..).zip(&patroni.members) {
            let own = own.replace(NAMES[0], member.name);
            let mut text = SHORTER.iter().fold(format!("{common}{own}"), |text, (from, to)| text.replace(from, to));
            let witnesses = member.machine.dir().display().to_string();
            let parameters = [
                ("fsync", "off".into()),
                // A standby retries after 5 s by default.
                ("wal_retrieve_retry_interval", "200ms".into()),
                ("snowflake_pg.witness_directory", witnesses),
            ];
            for (name, value) in parameters.into_iter().chain(local(number)) {
                text.push_str(&format!("    {name}: '{value}'\n"));
            }
            Host::get().write(&member.file(), &patroni.here(member, &text));
            let passfile = member.directory().join("passfile");
            Host::get().write(&passfile, &format!("*:*:fleet:fleet:{PASSWORD}\n"));
            // libpq ignores a password file that others can read.
            fs::set_permissions(&passfile, PermissionsExt::from_mode(0o600))
                .expect("the mode of a new file can be set");
        }
        patroni.start_etcd();
        patroni
    }

    /// Starts all members, and waits until the standbys follow the leader.
    pub fn start(&mut self) {
        self.members.iter_mut().for_each(PatroniMember::start);
        self.wait_for_members();
    }

    /// Creates the extension, and the registry of a fleet with the layout of the servers.
    pub fn create_fleet(&self) {
        let mut client = self.connect();
        let layout: String = client.one("SHOW snowflake_pg.layout");
        for sql in [
            "CREATE EXTENSION snowflake_pg",
            "CREATE DATABASE fleet",
            &format!("CREATE ROLE fleet LOGIN PASSWORD '{PASSWORD}'"),
        ] {
            client.batch_execute(sql).expect("a superuser may");
        }
        let mut client = self.config().dbname("fleet").connect(NoTls).expect("the database exists");
        client.batch_execute("CREATE EXTENSION snowflake_registry").expect("the extension is installed");
        client.one::<String>(&format!("SELECT snowflake_registry.create_fleet('{layout}')::text"));
        client.batch_execute("SELECT snowflake_registry.grant_server('fleet')").expect("a superuser may");
    }

    /// Returns true if every member has a worker ID within this time.
    pub fn have_workers(&self, time: Duration) -> bool {
        within(time, || self.members.iter().all(PatroniMember::has_worker))
    }

    /// Waits until every member has a worker ID.
    pub fn wait_for_workers(&self) {
        assert!(self.have_workers(STEPS), "not all members have a worker ID:\n{}", self.log());
    }

    /// Returns a text of the page as a test types it on this member: with the addresses and paths of the test.
    pub fn here(&self, member: &PatroniMember, text: &str) -> String {
        let data = member.dir().display().to_string();
        let programs = Host::get().installation().bin.display().to_string();
        let own = member.directory.display().to_string();
        let hosts: Vec<&str> = self.members.iter().map(|member| member.address.as_str()).collect();
        let mut text = text
            .replace("/etc/patroni/", &format!("{own}/"))
            .replace("/etc/snowflake_pg", &own)
            .replace("/run/postgresql", &own)
            .replace("/srv/pg/data", &data)
            .replace("/usr/lib/postgresql/15/bin", &programs)
            .replace("10.0.0.0/8", "127.0.0.0/8")
            .replace("etcd1:", &format!("{}:", loopback(FIRST_ADDRESS)))
            .replace(&format!("host={}", NAMES.join(",")), &format!("host={}", hosts.join(",")));
        for (name, address) in NAMES.iter().zip(hosts) {
            text = text.replace(&format!("{name}:"), &format!("{address}:"));
            text = text.replace(&format!("host={name}"), &format!("host={address}"));
        }
        text
    }

    /// Returns the parameters of a connection to the current primary.
    pub fn config(&self) -> Config {
        let mut config = self.members[0].config();
        for member in &self.members[1..] {
            config.host(&member.address).port(5432);
        }
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config
    }

    /// Connects to the database `postgres` of the current primary, as soon as there is one.
    pub fn connect(&self) -> Client {
        self.connect_to("postgres")
    }

    /// Connects to a database of the current primary, as soon as there is one.
    pub fn connect_to(&self, database: &str) -> Client {
        let found = found_within(STEPS, || self.config().dbname(database).connect(NoTls).ok());
        found.unwrap_or_else(|| panic!("no primary:\n{}", self.log()))
    }

    /// Returns the index of the leader, as soon as there is one.
    pub fn leader(&self) -> usize {
        let found = found_within(STEPS, || self.leader_now());
        found.unwrap_or_else(|| panic!("no leader:\n{}", self.log()))
    }

    /// Returns the index of the member that has the leader lock, if there is one.
    pub fn leader_now(&self) -> Option<usize> {
        self.members.iter().position(PatroniMember::is_leader)
    }

    /// Waits until a member other than this one is the leader, and returns its index.
    pub fn leader_after(&self, former: usize) -> usize {
        let found = found_within(STEPS, || self.leader_now().filter(|leader| *leader != former));
        found.unwrap_or_else(|| panic!("nobody takes over from {}:\n{}", self.members[former].name, self.log()))
    }

    /// Waits until all other members follow the leader, and returns its index.
    pub fn wait_for_members(&self) -> usize {
        let found = self.followed_leader(STEPS);
        found.unwrap_or_else(|| panic!("the members do not follow a leader:\n{}", self.log()))
    }

    /// Returns the index of the leader if all other members follow it within this time.
    fn followed_leader(&self, time: Duration) -> Option<usize> {
        let followed = || {
            let leader = self.leader_now()?;
            let mut others = (0..self.members.len()).filter(|member| *member != leader);
            let follows = |member: usize| self.streams(leader, member) && self.members[member].is_replica();
            others.all(follows).then_some(leader)
        };
        found_within(time, followed)
    }

    /// Returns true if the leader sends the WAL of its timeline to this member. A former leader whose WAL the new one does not have
    /// streams its own timeline for a moment, before Patroni stops it to rewind it.
    fn streams(&self, leader: usize, member: usize) -> bool {
        let number = |index: usize, sql: &str| {
            let row = self.members[index].try_connect()?.query_opt(sql, &[]).ok()??;
            Some(row.get::<_, i32>(0))
        };
        let sent = format!(
            "SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer FROM pg_stat_replication
             WHERE state = 'streaming' AND application_name = '{}'",
            self.members[member].name
        );
        let received = "SELECT received_tli FROM pg_stat_wal_receiver WHERE status = 'streaming'";
        number(leader, &sent).is_some_and(|timeline| number(member, received) == Some(timeline))
    }

    /// Waits like [`Patroni::wait_for_members`], but reinitializes the members that do not follow the leader by themselves, and returns
    /// their indexes, too.
    pub fn repair_members(&self) -> (usize, Vec<usize>) {
        if let Some(leader) = self.followed_leader(SOON) {
            return (leader, Vec::new());
        }
        let leader = self.leader();
        let others = (0..self.members.len()).filter(|member| *member != leader);
        let stuck: Vec<usize> = others.filter(|member| !self.streams(leader, *member)).collect();
        stuck.iter().for_each(|member| self.members[*member].reinitialize());
        (self.wait_for_members(), stuck)
    }

    /// Makes another member the leader while all of them run, and waits until it is the leader.
    pub fn switchover(&self, to: usize) {
        let leader = self.leader();
        let (from, to_name) = (self.members[leader].name, self.members[to].name);
        let body = format!("{{\"leader\": \"{from}\", \"candidate\": \"{to_name}\"}}");
        let mut answer = (0, String::new());
        // A candidate that has just started to follow is not accepted yet.
        within(STEPS, || {
            answer = self.members[leader].request("POST", "/switchover", &body).unwrap_or_default();
            answer.0 == 200 || self.leader_now() == Some(to)
        });
        let done = within(STEPS, || self.leader_now() == Some(to));
        assert!(done, "no switchover from {from} to {to_name}: {answer:?}\n{}", self.log());
    }

    /// Changes the configuration that is the same on all members, and is stored in etcd. The change is a JSON object.
    pub fn change(&self, json: &str) {
        let (code, answer) = self.members[self.leader()].request("PATCH", "/config", json).expect("Patroni answers");
        assert_eq!(code, 200, "{json}: {answer}");
    }

    /// Stops etcd until [`Patroni::thaw_etcd`] is called.
    pub fn freeze_etcd(&self) {
        self.etcd.as_ref().expect("etcd runs").signal("STOP");
    }

    /// Lets etcd continue.
    pub fn thaw_etcd(&self) {
        self.etcd.as_ref().expect("etcd runs").signal("CONT");
    }

    /// Returns what all members have written since their last start.
    pub fn log(&self) -> String {
        let log = |member: &PatroniMember| format!("{}:\n{}", member.name, member.log());
        self.members.iter().map(log).collect::<Vec<_>>().join("\n")
    }

    fn start_etcd(&mut self) {
        let address = loopback(FIRST_ADDRESS);
        let (clients, peers) = (format!("http://{address}:2379"), format!("http://{address}:2380"));
        let mut etcd = Host::get().debian_program("etcd").expect("`scripts/setup engines` provides etcd");
        etcd.arg("--data-dir")
            .arg(self.directory.0.join("etcd"))
            .args(["--name=etcd1", "--logger=zap", "--log-level=warn"])
            .args([
                format!("--listen-client-urls={clients}"),
                format!("--advertise-client-urls={clients}"),
                format!("--listen-peer-urls={peers}"),
                format!("--initial-advertise-peer-urls={peers}"),
                format!("--initial-cluster=etcd1={peers}"),
            ]);
        let mut service = Service::start(etcd, &self.directory.0.join("etcd.log"));
        let answers = || request(&address, 2379, "GET", "/health", "").is_some_and(|(code, _)| code == 200);
        let up = within(PATIENCE, || answers() || !service.is_running());
        assert!(up && service.is_running(), "etcd does not start:\n{}", service.log());
        self.etcd = Some(service);
    }
}

impl Drop for Patroni {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        for member in &mut self.members {
            member.end();
        }
    }
}

/// Returns the configuration without the connection to a registry.
fn without_registry(common: &str) -> String {
    let lines = common.lines().filter(|line| !line.contains("snowflake_pg.registry"));
    lines.map(|line| format!("{line}\n")).collect()
}
