//! Types the blocks of docs/patroni.md.

use std::fs;
use std::time::Duration;

use cluster::{Answer, Host, Patroni, PatroniMember, Recipe, command, output, printed, succeeds_within, typed, within};
use postgres::NoTls;

pub const PAGE: &str = "docs/patroni.md";

/// How long a test waits for what Patroni does within a few cycles.
pub const SOON: Duration = Duration::from_secs(120);

/// Returns the section of the page with this heading.
pub fn section(title: &str) -> Recipe {
    Recipe::of(PAGE, title)
}

/// Types a block into a shell on this member. Each command of the block must succeed.
pub fn shell(patroni: &Patroni, member: &PatroniMember, text: &str) -> Result<String, String> {
    let mut shell = Host::get().shell(&format!("set -e\n{}", patroni.here(member, text)));
    member.environment(&mut shell);
    typed(shell, "")
}

/// Types a block into psql on this member.
pub fn psql(patroni: &Patroni, member: &PatroniMember, database: &str, text: &str) -> Result<String, String> {
    let mut psql = Host::get().program("psql");
    member.environment(&mut psql);
    psql.env("PGPASSWORD", "postgres-secret").args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]);
    psql.arg(format!("host={} user=postgres dbname={database}", member.address));
    typed(psql, &patroni.here(member, text))
}

/// Waits until a command prints what the page shows, except for times, addresses and paths.
pub fn check(patroni: &Patroni, shown: &str, mut print: impl FnMut() -> Result<String, String>) {
    let check = || print().and_then(|printed| compare(patroni, &printed, shown));
    succeeds_within(SOON, check).unwrap_or_else(|reason| panic!("{reason}\n{}", patroni.log()));
}

/// Compares texts except for times, addresses, the name of the machine, and the widths of columns.
fn compare(patroni: &Patroni, printed: &str, shown: &str) -> Result<(), String> {
    let machine = output(command("uname").arg("-n"));
    let here = |text: &str| {
        // patronictl shows the cluster in the frame of its table.
        let lines = text.lines().filter(|line| !line.starts_with("+ Cluster"));
        let text = lines.map(|line| format!("{line}\n")).collect::<String>();
        patroni.members.iter().fold(text, |text, member| {
            text.replace(&member.dir().display().to_string(), "/srv/pg/data").replace(&member.address, member.name)
        })
    };
    cluster::compare(&here(printed), &here(shown), |word| {
        let bare = word.trim_matches(|c: char| "\",.()".contains(c));
        let digits = bare.chars().filter(char::is_ascii_digit).count();
        if digits >= 6 && bare.chars().all(|c| c.is_ascii_hexdigit() || "-+:.TZ".contains(c)) {
            "*".into()
        } else if bare == machine || patroni.members.iter().any(|member| member.name == bare) {
            "HOST".into()
        } else {
            word.into()
        }
    })
}

/// Returns the configuration of a cluster without snowflake_pg.
fn without_snowflake(common: &str) -> String {
    let ours = |line: &&str| line.contains("snowflake_pg") || line.trim_start() == "parameters:";
    common.lines().filter(|line| !ours(line)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn snowflake_pg_is_added_to_a_cluster_and_its_members_keep_their_worker_ids() {
    let local = |_| vec![("snowflake_pg.lease", "10min".into())];
    let mut patroni = Patroni::prepare("patroni_page", |common| without_snowflake(&common), local);
    let [_, _, passfile, start] =
        section("Configure the members").rest(["yaml common", "yaml db1", "sh members", "sh members"]);
    for member in &patroni.members {
        fs::remove_file(member.directory().join("passfile")).expect("it was written");
        shell(&patroni, member, &passfile).unwrap();
    }
    // This is how the members are started.
    assert_eq!(start, "patroni /etc/patroni/patroni.yml\n");
    patroni.members[0].start();
    assert_eq!(patroni.leader(), 0);
    patroni.members[1..].iter_mut().for_each(PatroniMember::start);
    patroni.wait_for_members();
    let [db1, db2, db3] = &patroni.members[..] else { panic!("three members") };

    let [list, shown, create] = section("Create the registry").rest(["sh list", "text", "sql leader"]);
    check(&patroni, &shown, || shell(&patroni, db1, &list));
    psql(&patroni, db1, "postgres", &create).unwrap();

    let [edit, list, shown, restart] =
        section("Add snowflake_pg to an existing cluster").rest(["sh edit", "sh list", "text", "sh edit"]);
    shell(&patroni, db1, &edit).unwrap();
    check(&patroni, &shown, || shell(&patroni, db1, &list));
    let (replicas, leader) = restart.trim_end().split_once('\n').expect("two commands");
    shell(&patroni, db1, replicas).unwrap();
    let has_worker =
        |member: &PatroniMember| member.try_connect().is_some_and(|_| !["", "-1"].contains(&&*member.worker()));
    assert!(within(SOON, || [db2, db3].into_iter().all(has_worker)), "{}", patroni.log());
    shell(&patroni, db1, leader).unwrap();
    patroni.wait_for_workers();
    patroni.wait_for_members();

    let [query, shown] = section("See which member has which worker ID").rest(["sql servers", "text"]);
    check(&patroni, &shown, || psql(&patroni, db1, "fleet", &query));
    let workers = || patroni.members.iter().map(PatroniMember::worker).collect::<Vec<_>>();
    let before = workers();

    let [switchover, open, shown] = section("Switch over").rest(["sh switchover", "sql open", "text"]);
    shell(&patroni, db1, &switchover).unwrap();
    assert_eq!(patroni.wait_for_members(), 1);
    let life = "SELECT life, life_reason, spare_open FROM snowflake_registry.status";
    let life = || printed(&mut db2.config().dbname("fleet").connect(NoTls).expect("the database exists"), life);
    let begun = || life().is_ok_and(|life| life == ["2 timeline 2 follows timeline 1 t"]);
    assert!(within(SOON, begun), "{:?}", life());
    check(&patroni, &shown, || psql(&patroni, db2, "fleet", &open));
    assert_eq!(workers(), before);

    // Two switchovers, after which the quarantine is not ended.
    for to in [0, 1] {
        patroni.switchover(to);
        patroni.wait_for_members();
        let timeline: i32 = patroni.connect().one("SELECT timeline_id FROM pg_control_checkpoint()");
        let reason =
            format!("SELECT life_reason LIKE '% {timeline} follows timeline %' FROM snowflake_registry.status");
        assert!(within(SOON, || patroni.connect_to("fleet").one(&reason)), "no life of timeline {timeline}");
    }
    // The machine of a member is restarted: it gets a worker ID although the quarantine goes on.
    let restart = |patroni: &mut Patroni| {
        patroni.members[2].lose_power();
        patroni.members[2].start();
        patroni.wait_for_members();
    };
    restart(&mut patroni);
    patroni.wait_for_workers();
    patroni.connect_to("fleet").batch_execute("SELECT snowflake_registry.close()").expect("the owner may");
    restart(&mut patroni);
    let [db1, db2, db3] = &patroni.members[..] else { panic!("three members") };
    let [query, shown] = section("A member gets no worker ID").rest(["sql member", "text"]);
    check(&patroni, &shown, || psql(&patroni, db3, "postgres", &query));
    // Without this, the wait would take a day.
    psql(&patroni, db2, "fleet", &open).unwrap();
    patroni.wait_for_workers();
    assert_eq!([db1.worker(), db2.worker()], before[..2]);
    assert!(!before.contains(&db3.worker()), "{}", db3.worker());
    does_not_start(&patroni, db3);
}

/// A member with a worker ID in addition to the registry does not start until the worker ID is removed.
fn does_not_start(patroni: &Patroni, member: &PatroniMember) {
    let [_, _, _, failed, repair] = section("Settings that override the Patroni files").rest([
        "sql member",
        "text",
        "sql reset",
        "text failed",
        "sh repair",
    ]);
    let alter = "ALTER SYSTEM SET snowflake_pg.worker_id = 7";
    member.connect().batch_execute(alter).expect("a superuser may");
    member.request("POST", "/restart", "{}");
    assert!(within(SOON, || member.log().contains(failed.trim_end())), "{}", member.log());
    let state = || shell(patroni, member, "patronictl -c /etc/patroni/patroni.yml list").unwrap();
    assert!(within(SOON, || state().contains("start failed")), "{}", state());
    shell(patroni, member, &repair).unwrap();
    patroni.wait_for_members();
    patroni.wait_for_workers();
}
