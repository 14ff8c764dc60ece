//! A client that does not read what the server sends. When the buffers of the connection are full, the server process waits in
//! ClientWrite, and keeps all locks that it holds at that time.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use postgres::Client;

use crate::proxy::SOCKET;
use crate::{Cluster, PATIENCE, found_within, within};

/// A connection whose client reads nothing.
pub struct UnreadClient {
    stream: UnixStream,
    /// The ID of the server process.
    process: i32,
    /// The statements that were sent last.
    sent: String,
}

impl UnreadClient {
    /// Connects to the database `postgres` as a role.
    pub fn connect(server: &Cluster, role: &str) -> UnreadClient {
        let stream = UnixStream::connect(server.socket().join(SOCKET)).expect("the server listens");
        let mut client = UnreadClient { stream, process: 0, sent: String::new() };
        let parameters =
            [&(3u32 << 16).to_be_bytes()[..], b"user\0", role.as_bytes(), b"\0database\0postgres\0\0"].concat();
        client.write(&[], &parameters);
        client.read();
        client
    }

    /// Executes statements and reads the answer, which must not be an error.
    pub fn run(&mut self, sql: &str) {
        self.send(sql);
        self.read();
    }

    /// Sends statements. Nothing reads the answer.
    pub fn send(&mut self, sql: &str) {
        self.sent = sql.into();
        self.write(b"Q", &[sql.as_bytes(), b"\0"].concat());
    }

    /// Returns the number of notices after which the connection takes no more. The notices are those of [`UnreadClient::fill`].
    /// `setup` is executed first.
    pub fn capacity(server: &Cluster, role: &str, setup: &str) -> usize {
        let mut watch = server.connect();
        watch.batch_execute("CREATE SEQUENCE notices; GRANT ALL ON notices TO PUBLIC").expect("a sequence");
        let mut client = UnreadClient::connect(server, role);
        client.run(setup);
        client.send(&format!("DO $$ BEGIN {} END $$", UnreadClient::fill(100_000)));
        assert!(client.waits(&mut watch), "the server process does not wait for the client");
        let sent: i64 = watch.query_one("SELECT last_value FROM notices", &[]).expect("a sequence").get(0);
        sent as usize - 1
    }

    /// Returns statements in PL/pgSQL that send this number of notices.
    pub fn fill(notices: usize) -> String {
        format!("FOR n IN 1..{notices} LOOP PERFORM nextval('notices'); RAISE NOTICE '%', repeat('x', 1000); END LOOP;")
    }

    /// Waits until the server process waits for this client, which results in true, or has executed the statements, which results in
    /// false.
    pub fn waits(&self, watch: &mut Client) -> bool {
        // The view shows the beginning of the statements. The session can have ended.
        let state = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'ClientWrite'),
            NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND (state = 'active' OR query = '' OR NOT starts_with($2, query)))";
        let found = found_within(PATIENCE, || {
            let row = watch.query_one(state, &[&self.process, &self.sent]).expect("one row");
            let (waits, has_ended): (bool, bool) = (row.get(0), row.get(1));
            (waits || has_ended).then_some(waits)
        });
        found.expect("the statements neither wait for the client nor end")
    }

    /// Ends the connection, and waits until the server process has ended.
    pub fn close(self, watch: &mut Client) {
        let UnreadClient { stream, process, .. } = self;
        drop(stream);
        let ended = || {
            watch.query("SELECT FROM pg_stat_activity WHERE pid = $1", &[&process]).is_ok_and(|rows| rows.is_empty())
        };
        assert!(within(PATIENCE, ended), "the session goes on");
    }

    fn write(&mut self, kind: &[u8], content: &[u8]) {
        let length = (content.len() as u32 + 4).to_be_bytes();
        self.stream.write_all(&[kind, &length, content].concat()).expect("the server reads");
    }

    /// Reads up to the message ReadyForQuery.
    fn read(&mut self) {
        loop {
            let mut head = [0; 5];
            self.stream.read_exact(&mut head).expect("the server answers");
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4;
            let mut content = vec![0; length];
            self.stream.read_exact(&mut content).expect("the server answers");
            match head[0] {
                b'Z' => return,
                b'K' => self.process = i32::from_be_bytes([content[0], content[1], content[2], content[3]]),
                b'E' => panic!("{}", String::from_utf8_lossy(&content)),
                _ => {}
            }
        }
    }
}
