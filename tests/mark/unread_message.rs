//! A session whose client does not read holds no lock that another session needs: it neither logs nor raises an error while it has locked
//! the mark.

use cluster::{Answer, Cluster, UnreadClient, assert_caught, ensure};

/// The client does not read what the session logs when it issues the first ID. Returns an error if the mark stays locked.
fn check(name: &str, fault: Option<&str>, message: &str) -> Result<(), String> {
    let (server, mut session) = Cluster::builder(name).fault_if(fault).start_session();
    let setup = "SET client_min_messages = log";
    let notices = UnreadClient::capacity(&server, "postgres", setup);
    let mut client = UnreadClient::connect(&server, "postgres");
    client.run(setup);
    client.send(&format!("DO $$ BEGIN {} PERFORM snowflake_nextval(); END $$", UnreadClient::fill(notices)));
    assert!(client.waits(&mut session));
    assert!(server.log().contains(message), "the session waits before the message: {}", server.log());
    // The call waits for all sessions that have locked the mark.
    let code = session.code("SET lock_timeout = '5s'; SELECT snowflake_set_mark(1)");
    ensure!(code.is_none(), "the mark is locked: {code:?}");
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > 0);
    client.close(&mut session);
    Ok(())
}

#[test]
fn a_client_that_does_not_read_the_log_message_of_the_first_id_keeps_nothing_locked() {
    check("mark_unread", None, "new IDs begin at").unwrap();
}

#[test]
fn a_message_that_is_logged_with_the_lock_is_caught() {
    assert_caught(
        check("mark_unread_locked", Some("LoggedLocked"), "the mark is locked"),
        "the mark is locked: Some(\"55P03\")",
    );
}
