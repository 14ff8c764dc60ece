//! A client that does not read what the server sends. When the buffers of the connection are full, the server process waits in
//! ClientWrite, and keeps all locks that it holds at that time.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use postgres::Client;

use crate::proxy::SOCKET;
use crate::{Cluster, found_within, within};

/// A connection whose client reads nothing.
pub struct UnreadClient {
    stream: UnixStream,
    /// The ID of the server process.
    pub process: i32,
}

impl UnreadClient {
    /// Connects to the database `postgres` as a role.
    pub fn connect(server: &Cluster, role: &str) -> UnreadClient {
        let stream = UnixStream::connect(server.socket().join(SOCKET)).expect("the server listens");
        let mut client = UnreadClient { stream, process: 0 };
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

    /// Returns true if the server process waits for this client, after at most some seconds.
    pub fn waits(&self, watch: &mut Client) -> bool {
        let event = "SELECT wait_event FROM pg_stat_activity WHERE pid = $1";
        let ended = "SELECT state <> 'active' FROM pg_stat_activity WHERE pid = $1";
        let mut get = |sql| watch.query_one(sql, &[&self.process]).expect("the session exists");
        let found = found_within(Duration::from_secs(10), || {
            let event: Option<String> = get(event).get(0);
            let waits = event.as_deref() == Some("ClientWrite");
            (waits || get(ended).get(0)).then_some(waits)
        });
        found == Some(true)
    }

    /// Ends the connection, and waits until the server process has ended.
    pub fn close(self, watch: &mut Client) {
        let UnreadClient { stream, process } = self;
        drop(stream);
        let ended = || {
            watch.query("SELECT FROM pg_stat_activity WHERE pid = $1", &[&process]).is_ok_and(|rows| rows.is_empty())
        };
        assert!(within(Duration::from_secs(10), ended), "the session goes on");
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
