//! The log shows without a request the identity of the server, its promotion, faults of its clock, and the end of its layout.

use std::time::Duration;

use cluster::{Answer, Builder, Client, Cluster, Host, SOON, Stop, assert_caught, ensure, within};

/// The line in which the mark worker logs the identity of the server.
fn begun(server: &Cluster) -> String {
    let line = || {
        let log = server.log();
        let told = log.lines().filter_map(|line| line.split_once("LOG:  snowflake_pg: ").map(|(_, told)| told));
        let lines: Vec<&str> =
            told.filter(|told| told.starts_with("started") || told.starts_with("promoted")).collect();
        assert!(lines.len() < 2, "more than one line:\n{log}");
        lines.first().map(std::string::ToString::to_string)
    };
    assert!(within(SOON, || line().is_some()), "no line:\n{}", server.log());
    line().expect("just seen")
}

#[test]
fn a_server_that_starts_says_who_it_is() {
    let mut server = Cluster::builder("log_start").start();
    assert_eq!(
        begun(&server),
        "started with worker ID 1, layout \"41:10:12\", epoch 2010-11-04T01:42:54.657+00:00, no ID issued yet"
    );
    server.session().batch(10);
    for how in [Stop::Fast, Stop::Immediate] {
        let mark = server.shown_mark();
        let at: String = server.session().one(&format!(
            "SELECT to_char(snowflake_timestamp({mark}) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS')"
        ));
        server.restart(how);
        let line = begun(&server);
        assert!(line.contains(&format!(", high-water mark {mark} ({at}")), "{line}, not {mark} ({at}");
    }
    server.set("snowflake_pg.layout", "41:5:5:12");
    server.set("snowflake_pg.datacenter_id", "3");
    server.set("snowflake_pg.epoch", "2020-01-01T00:00:00Z");
    server.restart(Stop::Fast);
    assert!(
        begun(&server).starts_with(
            "started with datacenter ID 3, worker ID 1, layout \"41:5:5:12\", epoch 2020-01-01T00:00:00+00:00, high-water mark "
        ),
        "{}",
        server.log()
    );
}

#[test]
fn a_promoted_standby_says_whose_place_it_takes() {
    let primary = Cluster::builder("log_primary").start();
    primary.session().batch(10);
    for (name, worker, expected) in [
        ("log_same", "1", "promoted, taking over worker ID 1, layout "),
        ("log_other", "2", "promoted with worker ID 2, last ID issued with worker ID 1, layout "),
    ] {
        let mut standby = primary.standby(Cluster::builder(name).set("snowflake_pg.worker_id", worker));
        let mark = primary.shown_mark();
        assert!(within(SOON, || standby.shown_mark() == mark));
        standby.promote();
        let line = begun(&standby);
        assert!(line.starts_with(expected), "{line}");
        assert!(line.contains(&format!("high-water mark {mark} (")), "{line}");
        // It is logged only once.
        standby.restart(Stop::Fast);
        assert!(begun(&standby).starts_with(&format!("started with worker ID {worker}, ")));
    }
}

#[test]
fn a_server_that_promotes_itself_goes_on() {
    let mut server = Cluster::builder("log_itself").start();
    server.session().batch(10);
    let mark = server.shown_mark();
    // Patroni does this after a crash: it starts the server as a standby and promotes it.
    server.stop(Stop::Immediate);
    Host::get().write(&server.dir().join("standby.signal"), "");
    server.start();
    server.promote();
    let line = begun(&server);
    assert!(line.starts_with("promoted, continuing with worker ID 1, layout "), "{line}");
    assert!(line.contains(&format!("high-water mark {mark} (")), "{line}");
    let watches = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'snowflake_pg standby watch')";
    assert!(within(SOON, || !server.connect().one::<bool>(watches)), "the standby watch outlives the promotion");
    assert!(!server.log().contains("WARNING:  snowflake_pg"), "{}", server.log());
    server.connect().batch(10);
}

/// A promoted server may have issued IDs above its current mark, as an earlier primary. It logs a warning if IDs have led the
/// clock.
fn check_lead(primary_clock: &str) -> Result<(), String> {
    let (primary, mut session) = Cluster::builder("log_lead_primary").clock("+0").start_session();
    session.batch(10);
    primary.set_clock(primary_clock);
    let stepped = within(SOON, || {
        session.batch(10);
        session.one::<bool>(
            "SELECT last_id_at - clock_timestamp() BETWEEN '-5 s' AND '5 s' AND extensions > 2 FROM snowflake_status",
        )
    });
    ensure!(stepped, "the clock is not followed:\n{}", primary.log());
    let standby = primary.standby(
        Cluster::builder("log_lead_standby")
            .set("snowflake_pg.worker_id", "2")
            .set("log_line_prefix", "%m [%p] %e ")
            .clock("+0"),
    );
    let mark = primary.shown_mark();
    ensure!(within(SOON, || standby.shown_mark() >= mark), "the standby does not follow");
    standby.promote();
    let line = begun(&standby);
    ensure!(line.starts_with("promoted with worker ID 2, last ID issued with worker ID 1, layout "), "{line}");
    // The background worker ends when it has logged everything.
    let keeps = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'snowflake_pg mark worker')";
    ensure!(within(SOON, || !standby.connect().one::<bool>(keeps)), "the background worker does not end");
    let log = standby.log();
    let warning = "01000 WARNING:  snowflake_pg: the server was promoted with worker ID 2, but the high-water mark is ";
    ensure!(log.contains(warning), "no warning:\n{log}");
    ensure!(
        log.contains("s ahead of the clock")
            && log.contains("running pg_rewind or restoring a base backup replaces the mark"),
        "{log}"
    );
    ensure!(
        log.contains("See \"Streaming replication\" in $(pg_config --sharedir)/snowflake_pg/docs/worker-ids.md"),
        "{log}"
    );
    Ok(())
}

#[test]
fn a_promoted_server_whose_mark_is_far_ahead_is_warned() {
    check_lead("+600").unwrap();
    // A mark ahead by a window and max_ahead is no reason for a warning.
    assert_caught(check_lead("+0"), "no warning");
}

#[test]
fn a_server_that_cannot_issue_says_why_when_it_starts() {
    let year = |server: &Cluster| -> i32 { server.connect().one("SELECT extract(year FROM now())::int") };
    // 2^40 ms are 34.84 years.
    let mut server = Cluster::builder("log_end").set("snowflake_pg.layout", "40:10:12").start();
    let this = year(&server);
    for (epoch, expected) in [
        (this - 30, None),
        (this - 34, Some("WARNING:  snowflake_pg: the timestamps of layout \"40:10:12\" will be exhausted in ")),
        (
            this - 37,
            Some("WARNING:  snowflake_pg: cannot issue IDs: the timestamps of layout \"40:10:12\" are exhausted"),
        ),
        (this + 2, Some("WARNING:  snowflake_pg: cannot issue IDs: the clock is before the epoch")),
    ] {
        server.set("snowflake_pg.epoch", &format!("{epoch}-06-01T00:00:00Z"));
        server.restart(Stop::Fast);
        assert!(within(SOON, || server.log().contains("started with worker ID 1")), "{}", server.log());
        assert!(server.log().lines().all(|line| !line.trim_end().ends_with("DETAIL:")), "{}", server.log());
        match expected {
            Some(expected) => assert!(within(SOON, || server.log().contains(expected)), "{}", server.log()),
            None => assert!(!server.log().contains("WARNING"), "{}", server.log()),
        }
    }
    server.set("snowflake_pg.layout", "41:10:12");
    server.unset("snowflake_pg.epoch");
    server.unset("snowflake_pg.worker_id");
    server.restart(Stop::Fast);
    let expected = "WARNING:  snowflake_pg: cannot issue IDs: parameter \"snowflake_pg.worker_id\" is not set";
    assert!(within(SOON, || server.log().contains(expected)), "{}", server.log());
    assert!(server.log().lines().all(|line| !line.trim_end().ends_with("DETAIL:")), "{}", server.log());
}

/// The end of the layout is logged again while IDs are drawn, but not each time.
#[test]
fn a_layout_that_ends_before_long_is_warned_of_once_a_day() {
    let (server, mut session) = Cluster::builder("log_2079").clock("+0").start_session();
    session.batch(10);
    assert!(!server.log().contains("will be exhausted in"), "told without need:\n{}", server.log());
    // The default layout ends in July 2080.
    session.run("SELECT snowflake_stat_reset()");
    server.set_clock("@2079-01-01 00:00:00");
    session.run("SELECT snowflake_accept_clock()");
    let expected = "the timestamps of layout \"41:10:12\" will be exhausted in 1.5 years";
    let told = within(SOON, || {
        session.batch(10);
        server.log().contains(expected)
    });
    assert!(told, "nothing is told of the end:\n{}", server.log());
    let extensions: i64 = session.one("SELECT extensions FROM snowflake_status");
    let extended = within(SOON, || {
        session.batch(100_000);
        session.one::<i64>("SELECT extensions FROM snowflake_status") > extensions + 2
    });
    assert!(extended, "nothing is extended");
    assert_eq!(server.log().matches(expected).count(), 1, "{}", server.log());
}

/// A clock that is repeatedly set back and forth does not fill the log. The next message says how many were withheld.
fn check_limit(builder: Builder) -> Result<(), String> {
    let (server, mut session) = builder.clock("+0").start_session();
    session.batch(10);
    let count = |session: &mut Client, what: &str| -> i64 {
        session.batch(10);
        session.one(&format!("SELECT {what} FROM snowflake_status"))
    };
    // The clocks are compared when the reservation is extended.
    let mut set_clock = |offset: &str| {
        server.set_clock(offset);
        let before = count(&mut session, "extensions");
        let compared = within(SOON, || count(&mut session, "extensions") > before + 1);
        if compared { Ok(count(&mut session, "clock_regressions")) } else { Err("nothing is extended") }
    };
    for n in 1..=4 {
        let noticed = set_clock("-5")?;
        ensure!(noticed == n, "{noticed} of {n} regressions are counted");
        set_clock("+0")?;
    }
    let told = || server.log().matches("WARNING:  snowflake_pg: the clock was set back").count();
    ensure!(told() == 1, "4 regressions are told {} times", told());
    // A much larger regression is logged at once, and so is one after which a restart would refuse to issue.
    set_clock("-200")?;
    ensure!(told() == 2, "a much larger one is not told");
    ensure!(
        server.log().contains("3 similar messages have been suppressed since the last one was logged."),
        "{}",
        server.log()
    );
    set_clock("-172800")?;
    let log = server.log();
    ensure!(
        log.contains("After a restart, the server would issue no IDs"),
        "that a restart refuses is not told:\n{log}"
    );
    set_clock("+0")?;
    set_clock("-5")?;
    set_clock("+0")?;
    std::thread::sleep(Duration::from_secs(61));
    set_clock("-5")?;
    let log = server.log();
    ensure!(
        log.contains("1 similar message has been suppressed since the last one was logged."),
        "nothing of what was withheld:\n{log}"
    );
    let counted = log.lines().any(|line| line.contains("The wall clock has been set back 8 times since 20"));
    ensure!(counted, "not counted:\n{log}");
    Ok(())
}

#[test]
fn a_restless_clock_does_not_fill_the_log() {
    check_limit(Cluster::builder("log_restless")).unwrap();
}

#[test]
fn a_log_without_a_limit_is_caught() {
    assert_caught(check_limit(Cluster::builder("log_talkative").fault("TalkativeLog")), "are told");
}
