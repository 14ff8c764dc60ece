//! Whatever the wall clock does while the server runs, sessions get IDs, no ID repeats, and IDs lead the clock no further than
//! they must.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cluster::{Answer, Ask, Builder, Chance, Cluster, Load, assert_caught, assert_caught_by_chance, ensure, within};

/// The longest time until a changed clock is noticed: half of the longest window, and a margin for a busy machine.
const NOTICED: Duration = Duration::from_secs(10);

/// An offset of the faked clock, given in milliseconds, in the form that the harness needs.
fn offset(ms: i64) -> String {
    format!("{:+.3}", ms as f64 / 1e3)
}

/// The time from now to the beginning of a year, in milliseconds, approximately.
fn until(year: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_millis();
    (year - 1970) * 365 * 86_400_000 - i64::try_from(now).expect("a clock before the year 292,000,000")
}

/// Steps of all kinds under load, at least as many as `events`: no error, no stall, no duplicate.
fn check_steps(name: &str, builder: Builder, events: usize) -> Result<(), String> {
    let mut chance = Chance::of(name);
    let server = builder.clock("+0").start();
    Load::prepare(&server);
    let load = Load::start(&server, 6, Ask::ALL, "");
    // Without an ID before the first step, there would be nothing to compare the clock with.
    server.session().lead();
    let step = |ms: i64| server.set_clock(&offset(ms));
    let mut count = 0;
    while count < events {
        count += match chance.between(0, 5) {
            // Strobing: back and forth, faster than the clocks are compared, and always to the same tick.
            0 => {
                for n in 0..8 {
                    step(if n % 2 == 0 { chance.between(-5_000, 5_000) } else { 0 });
                    thread::sleep(chance.millis(40));
                }
                8
            }
            1 => {
                step(3_600_000);
                thread::sleep(Duration::from_millis(300) + chance.millis(700));
                step(0);
                2
            }
            kind => {
                let size = *chance.pick(&[1, 5, 20, 90, 110, 300, 1_000, 5_000, 30_000, 288_000]);
                step(match kind {
                    2 => *chance.pick(&[-size, size]),
                    3 => -3_600_000,
                    4 => until(1970),
                    // The default layout ends in 2080.
                    _ => until(2095),
                });
                1
            }
        };
        thread::sleep(Duration::from_millis(100) + chance.millis(500));
        step(0);
        count += 1;
    }
    // At the end the clock goes back by an hour and stays there.
    step(-3_600_000);
    thread::sleep(Duration::from_secs(1));
    let history = load.finish();
    println!("{name}: {count} events, {} IDs, slowest {:?}", history.len(), history.slowest);
    ensure!(history.stalled == 0, "{} sessions stalled", history.stalled);
    ensure!(history.errors.is_empty(), "sessions were refused: {:?}", history.errors);
    ensure!(history.slowest < Duration::from_secs(3), "a session stalled for {:?}", history.slowest);
    history.check(10_000)
}

#[test]
fn whatever_the_clock_does_sessions_neither_stall_nor_fail_nor_repeat() {
    check_steps("clock_steps", Cluster::builder("clock_steps"), 60).unwrap();
}

#[test]
fn a_generator_on_the_wall_clock_is_caught() {
    let builder = || Cluster::builder("clock_wall").fault("WallClock");
    assert_caught_by_chance(|| check_steps("clock_wall", builder(), 30), "stalled");
}

#[test]
fn an_hour_back_costs_nothing_and_the_lead_bleeds_off() {
    let server = Cluster::builder("clock_hour").clock("+0").start();
    Load::prepare(&server);
    let load = Load::start(&server, 4, Ask::ALL, "");
    let mut session = server.session();
    assert!(session.lead().abs() < 1.0);
    server.set_clock("-3600");
    let noticed = || server.log().contains("the clock was set back by 3600.");
    assert!(within(NOTICED, noticed), "the step is not noticed:\n{}", server.log());
    let begun = Instant::now();
    let before = session.lead();
    assert!((3_590.0..3_601.0).contains(&before), "{before}");
    // The lead decreases by a tenth of the time that passes. The test requires half of that.
    let bled = || before - session.lead() > 0.05 * begun.elapsed().as_secs_f64().max(4.0);
    assert!(within(Duration::from_secs(30), bled), "the lead stays at {before} s");
    let history = load.finish();
    assert!(history.errors.is_empty(), "{:?}", history.errors);
    // The extension of a window takes milliseconds.
    assert!(history.slowest < Duration::from_secs(2), "{:?}", history.slowest);
    history.check(1_000).unwrap();
    let log = server.log();
    assert_eq!(log.matches("the clock was set back").count(), 1, "{log}");
    assert!(log.contains(
        "The timestamps of new IDs advance with the monotonic clock. The wall clock has been set back once since 20"
    ));
}

#[test]
fn a_jump_is_not_followed_and_its_end_is_no_regression() {
    let (server, mut session) = Cluster::builder("clock_jump").clock("+0").start_session();
    session.lead();
    let load = Load::start(&server, 2, Ask::READING, "");
    // Two hours are more than max_jump, an hour.
    server.set_clock("+7200");
    let jumped = || server.log().contains("the clock was set forward by 7200.0");
    assert!(within(NOTICED, jumped), "the jump is not noticed:\n{}", server.log());
    assert!((-7_201.0..-7_198.0).contains(&session.lead()));
    thread::sleep(Duration::from_secs(2));
    server.set_clock("+0");
    let returned = || server.log().contains("the clock was corrected after a jump that IDs did not follow");
    assert!(within(NOTICED, returned), "the return is not noticed:\n{}", server.log());
    assert!(session.lead().abs() < 1.0);
    // A jump of ten minutes is followed.
    server.set_clock("+600");
    let followed = || server.log().contains("the clock was set forward by 600.0") && session.lead().abs() < 1.0;
    assert!(within(NOTICED, followed), "ten minutes are not followed:\n{}", server.log());
    load.finish().check(1_000).unwrap();
    let log = server.log();
    assert_eq!(log.matches("WARNING:  snowflake_pg: the clock was set forward").count(), 1, "{log}");
    assert!(log.lines().any(|line| line.contains("The wall clock has jumped once since 20")), "{log}");
    assert!(!log.contains("set back"), "{log}");
}

/// A clock that is far ahead for a moment does not pull the IDs along.
fn check_poison(builder: Builder) -> Result<(), String> {
    let (server, mut session) = builder.clock("+0").start_session();
    session.lead();
    let load = Load::start(&server, 2, Ask::READING, "");
    server.set_clock(&offset(until(2070)));
    ensure!(within(NOTICED, || server.log().contains("set forward")), "nobody looks at the clock");
    thread::sleep(Duration::from_secs(1));
    server.set_clock("+0");
    let lead = session.lead();
    ensure!(lead < 5.0, "IDs are {lead} s ahead for ever");
    load.finish().check(1_000)
}

#[test]
fn a_clock_far_ahead_once_does_not_poison_the_mark() {
    check_poison(Cluster::builder("clock_poison")).unwrap();
}

#[test]
fn a_generator_that_follows_every_jump_is_caught() {
    assert_caught(check_poison(Cluster::builder("clock_poison_fault").fault("JumpFollowed")), "ahead for ever");
}

#[test]
fn the_setting_wait_waits_for_a_short_step_and_refuses_a_long_one() {
    let (server, mut session) =
        Cluster::builder("clock_wait").set("snowflake_pg.on_clock_regression", "wait").clock("+0").start_session();
    session.lead();
    let begun = Instant::now();
    server.set_clock("-8");
    // Until the clock is back, IDs come from the reservation, or sessions wait for them.
    let mut other = server.session();
    let event = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND state = 'active'";
    let load = Load::start(&server, 2, Ask::READING, "");
    assert!(within(NOTICED, || other.one::<i64>(event) > 0), "nobody waits:\n{}", server.log());
    let caught_up = || session.lead() < 0.2 && begun.elapsed() > Duration::from_secs(8);
    assert!(within(Duration::from_secs(60), caught_up), "the clock is not met again");
    let history = load.finish();
    assert!(history.errors.is_empty(), "{:?}", history.errors);
    history.check(100).unwrap();
    // More than ten seconds are an error, as soon as the reservation is used up.
    server.set_clock("-60");
    let refused = || session.code("SELECT snowflake_nextval()").is_some();
    assert!(within(NOTICED, refused), "not refused:\n{}", server.log());
    let (code, message) = session.refusal("SELECT snowflake_nextval()");
    assert!(code == "55000" && message.starts_with("the clock was set back and is now 5"), "{code} {message}");
    // With the correct clock, issuing continues at once.
    server.set_clock("+0");
    assert!(within(NOTICED, || session.code("SELECT snowflake_nextval()").is_none()), "{}", server.log());
}

#[test]
fn the_setting_error_refuses_until_the_clock_is_right_or_the_setting_is_changed() {
    let (mut server, mut session) =
        Cluster::builder("clock_error").set("snowflake_pg.on_clock_regression", "error").clock("+0").start_session();
    let last: i64 = session.one("SELECT snowflake_nextval()");
    server.set_clock("-300");
    let refused = || session.code("SELECT snowflake_nextval()").is_some();
    assert!(within(NOTICED, refused), "not refused:\n{}", server.log());
    let [code, message, _, hint] = session.error("SELECT snowflake_nextval()");
    assert!(code == "55000" && message.starts_with("the clock was set back and is now 29"), "{code} {message}");
    assert!(hint.contains("set \"snowflake_pg.on_clock_regression\" to \"continue\""), "{hint}");
    assert!(server.log().contains("The server will not reserve more IDs until the clock has caught up."));
    server.set("snowflake_pg.on_clock_regression", "continue");
    server.reload();
    assert!(within(NOTICED, || session.code("SELECT snowflake_nextval()").is_none()), "{}", server.log());
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > last);
}

#[test]
fn a_restart_above_the_clock_is_no_regression() {
    let mut server = Cluster::builder("clock_restart").set("log_min_messages", "debug1").clock("+0").start();
    let last: i64 = server.session().one("SELECT snowflake_nextval()");
    server.restart_at(cluster::Stop::Immediate, "-3600");
    let mut session = server.session();
    let extended = || {
        assert!(session.one::<i64>("SELECT snowflake_nextval()") > last);
        server.log().matches("extended the reservation").count() >= 3
    };
    assert!(within(Duration::from_secs(20), extended));
    assert!(!server.log().contains("set back"), "{}", server.log());
}

/// On a machine so busy that the clocks are read 150 ms apart, no step of the clock is reported.
fn check_busy(builder: Builder) -> Result<(), String> {
    let server = builder.set("snowflake_pg.max_ahead", "2ms").set("log_min_messages", "debug1").start();
    Load::prepare(&server);
    let load = Load::start(&server, 2, Ask::READING, "");
    let extended = || server.log().matches("extended the reservation").count() >= 5;
    ensure!(within(Duration::from_secs(60), extended), "nobody looks at the clock");
    load.finish().check(100)?;
    let events = server.log().lines().filter(|line| line.contains("the clock was set")).count();
    ensure!(events == 0, "{events} steps of a clock that nobody set");
    Ok(())
}

#[test]
fn a_busy_machine_is_no_regression() {
    check_busy(Cluster::builder("clock_busy").fault("ReadsApart")).unwrap();
}

#[test]
fn clock_reads_that_are_taken_for_simultaneous_are_caught() {
    assert_caught(check_busy(Cluster::builder("clock_busy_fault").fault("ReadsTrusted")), "that nobody set");
}

#[test]
fn a_clock_outside_the_layout_at_start_is_an_error_until_it_is_right() {
    // Before the first tick of the layout, and after its last.
    for (year, code) in [(1970, "55000"), (2095, "2200H")] {
        let (server, mut session) =
            Cluster::builder(&format!("clock_start_{year}")).clock(&offset(until(year))).start_session();
        assert_eq!(session.code("SELECT snowflake_nextval()").as_deref(), Some(code));
        server.set_clock("+0");
        assert!(session.lead().abs() < 1.0);
    }
}
