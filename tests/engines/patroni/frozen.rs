//! docs/patroni.md, "A frozen leader that takes the lock back": the machine of the leader is paused for longer than `ttl`, another member
//! becomes the leader, and the old leader continues. With Patroni 3.0.2 and etcd 3, it often takes the lock back on its old timeline.

use cluster::{
    Answer, Client, History, Load, PATIENCE, Patroni, PatroniMember, assert_caught, check_unique, ensure, found_within,
    last_to_draw, not_tested, rounds, within,
};

use crate::patroni::failovers::{ASKS, SPARSE, draw_until};

/// Returns the timeline on which a primary writes.
fn timeline(session: &mut Client) -> String {
    session.one("SELECT substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)")
}

/// Draws all IDs of five seconds, which are ahead of the clock.
fn draw(session: &mut Client) -> Vec<i64> {
    let first: i64 = session.one("SELECT snowflake_nextval()");
    let until = last_to_draw(session, first);
    [vec![first], draw_until(session, until)].concat()
}

/// Freezes the leader until another member has taken over and has issued IDs. If the old leader takes the lock back, returns the members
/// that had to be reinitialized.
fn freeze(patroni: &Patroni, ledger: &mut History) -> Result<Option<Vec<usize>>, String> {
    let old = patroni.wait_for_members();
    let mut session = patroni.members[old].connect();
    let before = timeline(&mut session);
    session.batch_execute("TRUNCATE committed").expect("a superuser may");
    let is_empty = |member: &PatroniMember| {
        let rows = member.connect().query("SELECT n FROM committed", &[]);
        rows.is_ok_and(|rows| rows.is_empty())
    };
    ensure!(within(PATIENCE, || patroni.members.iter().all(is_empty)), "the standbys do not follow");
    let on_old = Load::at(&patroni.members[old].config(), 2, ASKS, "");
    let rows = "SELECT count(*) FROM load_rows";
    let begun: i64 = session.one(rows);
    ensure!(within(PATIENCE, || session.one::<i64>(rows) > begun + 50), "no rows are inserted");
    drop(session);

    patroni.members[old].freeze();
    // A request to the frozen member would wait.
    let others: Vec<usize> = (0..patroni.members.len()).filter(|member| *member != old).collect();
    let leads = |member: &usize| patroni.members[*member].is_leader();
    let new = found_within(2 * PATIENCE, || others.iter().copied().find(leads));
    let drawn = new.map(|new| {
        let mut session = patroni.members[new].connect();
        session.batch_execute("INSERT INTO committed VALUES (1)").expect("a primary");
        (new, draw(&mut session))
    });
    // Sessions of both primaries draw IDs at the same time.
    let on_new = new.map(|new| Load::at(&patroni.members[new].config(), 2, ASKS, ""));
    patroni.members[old].thaw();
    let (new, ids) = drawn.ok_or_else(|| format!("nobody takes over:\n{}", patroni.log()))?;
    ledger.stretches.push(ids);

    // pg_rewind can take a leader that was promoted moments ago for one that has not diverged. The page says to reinitialize it.
    let (leader, reinitialized) = patroni.repair_members();
    let mut session = patroni.members[leader].connect();
    ledger.stretches.push(draw(&mut session));
    ledger.merge(on_old.finish());
    on_new.into_iter().for_each(|load| ledger.merge(load.finish()));
    let taken_back = leader == old && timeline(&mut session) == before;
    let kept: i64 = session.one("SELECT count(*) FROM committed");
    println!("{old} was frozen, {new} took over, {leader} leads, {kept} rows are kept, {reinitialized:?}");
    ensure!(taken_back == (kept == 0), "{kept} rows are kept, taken back: {taken_back}");
    Ok(taken_back.then_some(reinitialized))
}

/// Freezes the leader until it takes the lock back, but only so many times. If it does, returns the members that had to be reinitialized.
fn check(patroni: &Patroni, freezes: u64) -> Result<Option<Vec<usize>>, String> {
    let sql = "CREATE TABLE load_rows (id bigint DEFAULT snowflake_nextval()); CREATE TABLE committed (n int)";
    patroni.connect().batch_execute(sql).expect("a superuser may");
    let mut ledger = History::default();
    for _ in 0..freezes {
        let taken_back = freeze(patroni, &mut ledger)?;
        ledger.check(100)?;
        if taken_back.is_some() {
            return Ok(taken_back);
        }
    }
    Ok(None)
}

#[test]
fn a_frozen_leader_that_takes_the_lock_back_repeats_no_id() {
    let patroni = Patroni::with_registry("patroni_frozen", &SPARSE);
    let freezes = rounds(6, 3);
    let Some(reinitialized) = check(&patroni, freezes).unwrap() else {
        return not_tested(&format!("a leader that takes the lock back, which Patroni prevented in {freezes} freezes"));
    };
    // The registry is on the old timeline. The page says to close it.
    patroni.connect_to("fleet").batch_execute("SELECT snowflake_registry.close()").expect("the owner may");
    // A member that was reinitialized gets no worker ID before the quarantine ends.
    let kept = (0..patroni.members.len()).filter(|member| !reinitialized.contains(member));
    let kept: Vec<&PatroniMember> = kept.map(|member| &patroni.members[member]).collect();
    assert!(within(PATIENCE, || kept.iter().all(|member| member.has_worker())), "{}", patroni.log());
    let number = |member: &&PatroniMember| member.worker().parse::<i64>().expect("a number") + 1;
    check_unique(&mut kept.iter().map(number).collect::<Vec<_>>()).unwrap();
}

#[test]
fn a_frozen_leader_with_the_common_worker_id_is_caught() {
    let patroni = Patroni::with_worker_ids("patroni_frozen_common", |_| 1, &SPARSE);
    assert_caught(check(&patroni, rounds(6, 3)).map(drop), "IDs came twice");
}
