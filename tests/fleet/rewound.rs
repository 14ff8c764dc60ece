//! Failback: a standby is promoted while its primary goes on, and the former primary is rewound and promoted again. The data directory
//! of the former primary has forgotten what it issued alone.

use cluster::{
    Answer, Boot, Builder, Cluster, Host, SPARSE_LAYOUT, Stop, assert_caught, check_unique, draw_above, ensure, within,
};

use crate::fleet::{SOON, number, server, string};

/// Rewinds a server that is stopped, so that it can follow another one.
pub fn rewind(server: &Cluster, to: &Cluster) {
    let source = format!("host={} user=postgres dbname=postgres", to.socket().display());
    let rewound = Host::get()
        .program("pg_rewind")
        .args(["--write-recovery-conf", "--no-sync", "--source-server", &source, "-D"])
        .arg(server.dir())
        .output()
        .expect("pg_rewind can be run");
    assert!(rewound.status.success(), "pg_rewind failed: {}", String::from_utf8_lossy(&rewound.stderr));
}

/// `like` configures the first and the second server. Returns the worker IDs of the former primary before and after the failback.
fn check(name: &str, reboot: bool, like: impl Fn(usize, &Boot) -> Builder) -> Result<[String; 2], String> {
    let machines = [1, 2].map(|n| Boot::new(&format!("{name}_{n}")));
    let build = |n: usize| {
        let like = like(n, &machines[n - 1]).sparse();
        like.set("wal_log_hints", "on").set("wal_keep_size", "1GB").set("wal_retrieve_retry_interval", "100ms")
    };
    let mut former = build(1).start();
    let mut ids = former.session().batch(16);
    let before = number(&former);
    let next = former.standby(build(2));
    let mark = former.shown_mark();
    assert!(within(SOON, || next.shown_mark() == mark), "the standby does not follow:\n{}", next.log());
    next.promote();
    next.connect().batch_execute("CHECKPOINT").expect("a superuser may");
    // The new primary issues nothing yet, so that its mark stays below what the former primary issues alone.
    ids.extend(draw_above(&mut former.connect(), mark));
    ensure!(number(&next) != before, "both servers have one worker ID");

    former.stop(Stop::Immediate);
    rewind(&former, &next);
    if reboot {
        machines[0].reboot();
    }
    // The clock is behind what the former primary has issued.
    former.set_clock_behind(&ids);
    former.start();
    former.promote();
    // The start can take longer than the clock is behind.
    former.set_clock_behind(&ids);
    ids.extend(draw_above(&mut former.connect(), mark));
    ids.extend(draw_above(&mut next.connect(), mark));
    check_unique(&mut ids)?;
    Ok([before, number(&former)])
}

#[test]
fn a_former_primary_that_is_rewound_begins_above_what_the_witness_contains() {
    let registry = Cluster::builder("rewound").start_registry(SPARSE_LAYOUT);
    let like = |n: usize, machine: &Boot| server(&format!("rewound_s{n}"), &string(&registry)).on(machine);
    let [before, after] = check("rewound", false, like).unwrap();
    assert_eq!(after, before);
}

#[test]
fn a_former_primary_that_is_rewound_on_a_machine_that_was_restarted_has_another_worker_id() {
    let registry = Cluster::builder("rebooted").start_registry(SPARSE_LAYOUT);
    let like = |n: usize, machine: &Boot| server(&format!("rebooted_s{n}"), &string(&registry)).on(machine);
    let [before, after] = check("rebooted", true, like).unwrap();
    assert_ne!(after, before);
}

#[test]
fn a_former_primary_with_a_worker_id_and_without_a_witness_is_caught() {
    let like = |n: usize, _: &Boot| {
        Cluster::builder(&format!("rewound_set_s{n}")).set("snowflake_pg.worker_id", &n.to_string())
    };
    assert_caught(check("rewound_set", false, like).map(drop), "IDs came twice");
}
