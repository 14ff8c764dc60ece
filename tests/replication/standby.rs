//! A standby neither issues IDs nor repairs the mark. After its promotion it can do both.

use cluster::{Answer, Builder, Cluster, assert_caught, ensure, sqlstate};

fn check_standby(primary: Builder, standby: Builder) -> Result<(), String> {
    let (primary, mut session) = primary.start_session();
    session.run("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int)");
    let before: i64 = session.one("INSERT INTO orders (n) VALUES (1) RETURNING id");
    let standby = primary.standby(standby.set("hot_standby", "on").set("snowflake_pg.worker_id", "2"));
    let mut replica = standby.connect();
    for function in [
        "snowflake_nextval()",
        "snowflake_nextval_batch(3)",
        "snowflake_reserve(3)",
        "snowflake_accept_clock()",
        "snowflake_set_mark(1, force => true)",
        "snowflake_set_mark(NULL)",
    ] {
        let sql = &format!("SELECT {function}");
        let Err(error) = replica.batch_execute(sql) else {
            return Err(format!("a standby answers {sql}"));
        };
        let (code, message, detail, hint) = sqlstate(&error);
        ensure!(code == "25006" && message == "cannot issue an ID during recovery", "{code} {message}");
        ensure!(!detail.is_empty() && hint == "Run the statement on the primary.", "{detail} {hint}");
    }
    // Functions that need no new ID work.
    ensure!(replica.one::<i32>(&format!("SELECT worker_id FROM snowflake_decode({before})")) == 1, "not decoded");
    standby.promote();
    // The session that was refused continues.
    let after: i64 = replica.one("INSERT INTO orders (n) VALUES (2) RETURNING id");
    ensure!(after > before, "{after} came after {before}");
    ensure!(replica.one::<i32>(&format!("SELECT worker_id FROM snowflake_decode({after})")) == 2, "another's number");
    ensure!(replica.code("SELECT snowflake_accept_clock()").is_none(), "nothing can be repaired");
    let mark: i64 = replica.one("SELECT snowflake_set_mark(snowflake_max_id(now() + interval '1 minute'))");
    ensure!(mark > after, "the mark was {mark}, and {after} was issued");
    Ok(())
}

#[test]
fn a_standby_issues_nothing_until_it_is_promoted() {
    check_standby(Cluster::builder("primary"), Cluster::builder("standby")).unwrap();
}

#[test]
fn a_standby_that_issues_is_caught() {
    let fault = "IssueInRecovery";
    let outcome =
        check_standby(Cluster::builder("primary_fault").fault(fault), Cluster::builder("standby_fault").fault(fault));
    assert_caught(outcome, "a standby answers");
}
