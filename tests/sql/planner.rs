//! A range of time up to now reads no partition that was created in advance.

use cluster::{Answer, Client, Cluster, assert_caught, ensure, page};

/// The partitions that a condition reads.
fn partitions_read(session: &mut Client, condition: &str) -> Vec<String> {
    let plan = session.plan(&format!("SELECT * FROM events WHERE {condition}"));
    let names = plan.lines().filter_map(|line| line.split_once(" on events_").map(|(_, rest)| rest));
    // A bitmap scan also has a line for its index.
    let names = names.map(|rest| rest.split(' ').next().expect("a name")).filter(|name| !name.ends_with("_pkey"));
    names.map(String::from).collect()
}

/// A range up to now reads no partition after tomorrow's. Tomorrow's can be read if the server was prepared before midnight.
fn check_up_to_now(session: &mut Client, condition: &str) -> Result<(), String> {
    let read = partitions_read(session, condition);
    ensure!(!read.is_empty() && read.len() <= 3, "read are {read:?}");
    let last: String = session.one("SELECT to_char(now() + interval '1 day', 'YYYYMMDD')");
    ensure!(read.iter().all(|name| *name <= last), "partitions made in advance are read: {read:?}");
    let (found, all): (i64, i64) = (
        session.one(&format!("SELECT count(*) FROM events WHERE {condition}")),
        session.one("SELECT count(*) FROM events"),
    );
    ensure!(found == all, "{found} of {all} rows");
    Ok(())
}

#[test]
fn a_range_up_to_now_reads_no_partition_that_was_made_in_advance() {
    let (_server, mut session) = Cluster::builder("planner_up_to_now").start_session();
    session.run(
        "CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
         SELECT snowflake_create_partitions('events', '1 day', 30, now() - interval '20 days');
         CREATE TABLE events_default PARTITION OF events DEFAULT;
         INSERT INTO events SELECT snowflake_nextval() FROM generate_series(1, 1000)",
    );
    // The form that the pages recommend.
    let bounded = "snowflake_between(id, now() - interval '1 day', now() + interval '1 minute')";
    for path in ["README.md", "docs/partitions.md"] {
        assert!(page(path).contains(bounded), "{path} recommends another");
    }
    assert!(page("docs/queries.md").contains(&bounded.replace("1 day", "1 hour")));
    check_up_to_now(&mut session, bounded).unwrap();
    check_up_to_now(&mut session, &bounded.replace("1 day", "1 hour")).unwrap();
    // The other form behaves as the pages say. It is also the control.
    let open = "snowflake_between(id, now() - interval '1 day', 'infinity')";
    let read = partitions_read(&mut session, open);
    assert!(read.len() >= 10 && read.contains(&"default".to_string()), "{read:?}");
    assert_caught(check_up_to_now(&mut session, open), "read are");
    let read = partitions_read(&mut session, "snowflake_between(id, '-infinity', now())");
    assert!(read.contains(&"default".to_string()), "{read:?}");
}
