//! A copy of a cluster for staging, with a copy of the registry. The copied setting names the registry of the original.

use cluster::{Answer, Ask, Boot, Builder, Client, Cluster, Load, Stop, assert_caught, ensure, page, within};

use crate::fleet::{LAYOUT, SOON, number, refused, renewed, renewed_above, seen, server, string, wait_for_log};

/// The quarantine of the spare worker IDs, in seconds. It includes one margin.
const QUARANTINE: f64 = 5_400.0;

/// The size of a tag's largest blocks, and how many numbers the tag skips for a life that only a renewal told of.
const MAX_STEP: i64 = 100;
const SKIP: i64 = 256 * MAX_STEP;

/// A registry and a server of its fleet, and a copy of the registry.
struct Production {
    registry: Cluster,
    server: Cluster,
    copy: Cluster,
}

impl Production {
    fn start(name: &str) -> Production {
        let registry = Cluster::builder(&format!("{name}_registry")).clock("+0").start_registry(LAYOUT);
        let tag = format!("SELECT snowflake_registry.create_segment('orders', 1, 10, {MAX_STEP})");
        registry.connect().batch_execute(&tag).expect("a superuser may");
        let server = server(&format!("{name}_1"), &string(&registry)).set("snowflake_pg.lease", "12h").start();
        assert!(within(SOON, || seen(&registry, &server).len() == 1), "no worker ID:\n{}", server.log());
        let copy = Cluster::builder(&format!("{name}_copy")).unset("shared_preload_libraries");
        let mut copy = registry.backup(copy);
        copy.start();
        Production { registry, server, copy }
    }

    /// Lets the server send a heartbeat now. It sends one when its connection string has changed.
    fn heartbeat(&mut self, timeout: u32) {
        let count = seen(&self.registry, &self.server)[0].count;
        let string = format!("{} connect_timeout={timeout}", string(&self.registry));
        self.server.set("snowflake_pg.registry", &string);
        self.server.reload();
        renewed_above(&self.registry, &self.server, count);
    }

    /// Starts a copy of the server, which gets a worker ID from the copy of the registry.
    fn staging(&self, like: Builder) -> Cluster {
        let mut staging = self.server.backup(like.set("snowflake_pg.registry", &string(&self.copy)));
        staging.start();
        renewed(&self.copy, &staging);
        staging
    }
}

fn life(registry: &mut Client) -> i64 {
    registry.one("SELECT life FROM snowflake_registry.status")
}

fn worker(id: i64) -> i64 {
    id >> 12 & 1023
}

/// The copy of the server reaches the registry of the original.
#[test]
fn a_copy_that_reaches_the_registry_delays_new_servers_by_90_minutes() {
    let mut production = Production::start("staging");
    let mut client = production.registry.connect();
    let mut session = production.server.session();
    let draw = "SELECT snowflake_segment_nextval('orders')";
    let mut numbers = vec![session.one::<i64>(draw)];
    let mut staging = production.staging(server("staging_2", &string(&production.copy)));
    assert_eq!(life(&mut client), 1);
    let load = Load::start(&production.server, 2, Ask::READING, "");
    staging.set("snowflake_pg.registry", &string(&production.registry));
    staging.reload();
    assert!(within(SOON, || life(&mut client) == 2), "the registry has not noticed the copy:\n{}", staging.log());
    let reason: String = client.one("SELECT life_reason FROM snowflake_registry.status");
    assert_eq!(reason, "a server knew of renewals that the registry has lost");

    // New servers wait for up to 90 minutes.
    let newcomer = server("staging_3", &string(&production.registry)).clock("+0").start();
    wait_for_log(&newcomer, "heartbeat failed: the registry is in quarantine, and no spare worker ID is free");
    let left: f64 = client.one(
        "SELECT extract(epoch FROM snowflake_registry.time_of(f, snowflake_registry.spare_quarantine_end(f)) - clock_timestamp())::float8
         FROM snowflake_registry.fleet AS f",
    );
    assert!(left > 0.0 && left <= QUARANTINE, "{left} s");
    assert_eq!(number(&newcomer), "-1");
    let mut ids = staging.session().batch(1_000);
    production.heartbeat(11);
    let passed = format!("+{}", QUARANTINE + 1.0);
    production.registry.set_clock(&passed);
    newcomer.set_clock(&passed);
    assert!(within(SOON, || number(&newcomer) == "768"), "{}:\n{}", number(&newcomer), newcomer.log());

    // Servers that have a worker ID go on.
    production.heartbeat(12);
    let mut ledger = load.finish();
    assert!(ledger.errors.is_empty(), "{:?}", ledger.errors);
    assert!(ledger.ids().iter().all(|id| worker(*id) == 0));
    ids.extend(newcomer.session().batch(1_000));
    ledger.stretches.push(ids);
    ledger.check(2_000).unwrap();

    // The tag skips once what the page says.
    let skip = format!("SELECT skip FROM snowflake_registry.segments WHERE tag = 'orders' AND max_step = {MAX_STEP}");
    assert_eq!(client.one::<i64>(&skip), SKIP);
    while numbers.len() < 5_000 && numbers.last() < Some(&SKIP) {
        numbers.push(session.one(draw));
    }
    assert!(numbers.last() > Some(&SKIP), "the tag has skipped nothing: {:?}", numbers.last());
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    let holes: Vec<i64> = client.all("SELECT last - first + 1 FROM snowflake_registry.holes WHERE tag = 'orders'");
    assert_eq!(holes, [SKIP]);
    assert_eq!(client.one::<i64>(&skip), 0);
}

/// Returns the values of `snowflake_pg.registry` that the page gives to a copy.
fn values_of_the_page() -> Vec<String> {
    let text = page("docs/registry.md");
    let (_, section) = text.split_once("## Keep copies of a cluster away").expect("the section exists");
    let (section, _) = section.split_once("\n## ").expect("another section follows");
    let settings = section.split("`snowflake_pg.registry = '").skip(1);
    settings.map(|rest| rest.split_once('\'').expect("a value in quotes").0.to_string()).collect()
}

/// A copy of the server is started once with the registry of the copy, and then with this value, or with the copied one.
fn check_away(name: &str, value: Option<&str>) -> Result<(), String> {
    let production = Production::start(name);
    let machine = Boot::new(name);
    let mut staging = production.staging(server(&format!("{name}_2"), &string(&production.copy)).on(&machine));
    staging.stop(Stop::Fast);
    let copied = string(&production.registry);
    let own = production.copy.socket().display().to_string();
    let value = value.map_or(copied, |value| {
        value
            .replace("staging1", &own)
            .replace("dbname=fleet", "dbname=postgres")
            .replace("user=fleet", "user=postgres")
    });
    staging.set("snowflake_pg.registry", &value);
    if value.is_empty() {
        staging.set("snowflake_pg.worker_id", "7");
    }
    staging.start();
    ensure!(within(SOON, || refused(&mut staging.session()).is_none()), "the copy issues no IDs:\n{}", staging.log());
    let mut registry = production.registry.connect();
    let met = "SELECT last_heartbeat IS NOT NULL FROM snowflake_status";
    let met = value.is_empty() || within(SOON, || staging.connect().one(met));
    ensure!(met, "the copy reaches no registry:\n{}", staging.log());
    ensure!(life(&mut registry) == 1, "the registry of the original has begun life 2");
    let known: i64 = registry.one("SELECT count(*) FROM snowflake_registry.servers");
    ensure!(known == 1, "the registry of the original knows {known} servers");
    let shown = if value.is_empty() { "7" } else { "1" };
    ensure!(number(&staging) == shown, "the copy has worker ID {}", number(&staging));
    Ok(())
}

#[test]
fn both_settings_of_the_page_keep_a_copy_away() {
    let values = values_of_the_page();
    assert_eq!(values.len(), 2, "{values:?}");
    for (n, value) in values.iter().enumerate() {
        check_away(&format!("staging_away_{n}"), Some(value)).unwrap();
    }
}

#[test]
fn a_copy_with_the_setting_of_the_original_is_caught() {
    assert_caught(check_away("staging_copied", None), "the registry of the original has begun life 2");
}
