//! A session whose client does not read holds no lock that another session needs: it neither logs nor raises an error while it has locked
//! the mark.

use cluster::{Answer, Cluster, UnreadClient};

#[test]
fn a_client_that_does_not_read_the_log_message_of_the_first_id_keeps_nothing_locked() {
    let (server, mut session) = Cluster::builder("mark_unread").start_session();
    let setup = "SET client_min_messages = log";
    let notices = UnreadClient::capacity(&server, "postgres", setup);
    let mut client = UnreadClient::connect(&server, "postgres");
    client.run(setup);
    client.send(&format!("DO $$ BEGIN {} PERFORM snowflake_nextval(); END $$", UnreadClient::fill(notices)));
    assert!(client.waits(&mut session));
    assert!(server.log().contains("new IDs begin at"), "the session waits before the message: {}", server.log());
    // The call waits for all sessions that have locked the mark.
    session.run("SET lock_timeout = '5s'; SELECT snowflake_set_mark(1)");
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > 0);
    client.close(&mut session);
}
