//! A proxy between a server and its clients, for example between a primary and its standby. It delays what clients send, and loses
//! answers of the server.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{Chance, Cluster, Host};

/// The name of a server's socket for port 5432.
pub const SOCKET: &str = ".s.PGSQL.5432";

/// Passes connections on to a server. Data from the server arrives at once or is lost. Data from the client arrives after a delay,
/// which is zero at first. When a connection ends, data that was not yet sent is lost. Dropping this value ends all connections.
pub struct Proxy {
    socket: PathBuf,
    state: Arc<ProxyState>,
    acceptor: Option<JoinHandle<()>>,
}

/// The state that the threads share.
struct ProxyState {
    way: Mutex<ProxyRoute>,
    changed: Condvar,
}

struct ProxyRoute {
    /// The delay of data from a client. `None` holds back all data.
    delay: Option<Duration>,
    /// The random choices of the answers that are lost, and how many answers there are for each of them. `None` loses nothing.
    loses: Option<(Chance, usize)>,
    /// The number of answers that were lost.
    lost: usize,
    ended: bool,
    /// Both ends of every connection, which are needed to end the connections.
    streams: Vec<UnixStream>,
}

impl Proxy {
    /// Starts a proxy with this name in front of a server, which need not be running yet.
    pub fn before(server: &Cluster, name: &str) -> Proxy {
        let host = Host::get();
        let socket = host.socket_dir(name);
        let listening = socket.join(SOCKET);
        let _ = fs::remove_file(&listening);
        let listener = UnixListener::bind(&listening).expect("a directory of its own can have a socket");
        fs::set_permissions(&listening, Permissions::from_mode(0o777)).expect("the mode of a new socket can be set");
        let way = ProxyRoute { delay: Some(Duration::ZERO), loses: None, lost: 0, ended: false, streams: Vec::new() };
        let state = Arc::new(ProxyState { way: Mutex::new(way), changed: Condvar::new() });
        let (server, shared) = (server.socket().join(SOCKET), state.clone());
        let acceptor = Some(thread::spawn(move || accept(&listener, &server, &shared)));
        Proxy { socket, state, acceptor }
    }

    /// Returns the directory of the socket, which is the host to connect to.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Makes all data from a client arrive after this delay from now on, including data that was sent before.
    pub fn delay(&self, delay: Duration) {
        self.change(|way| way.delay = Some(delay));
    }

    /// Holds back all data from a client from now on, until [`Proxy::delay`] is called. A primary ends a connection that is held
    /// back after `wal_sender_timeout`.
    pub fn hold(&self) {
        self.change(|way| way.delay = None);
    }

    /// Loses one in `times` answers of the server from now on, and ends their connections. The request has reached the server, and
    /// the answer to the login is never lost.
    pub fn lose_answers(&self, chance: Chance, times: usize) {
        self.change(|way| way.loses = Some((chance, times)));
    }

    /// Loses no answers from now on.
    pub fn lose_nothing(&self) {
        self.change(|way| way.loses = None);
    }

    /// Returns how many answers were lost.
    pub fn lost(&self) -> usize {
        self.state.lock().lost
    }

    fn change(&self, change: impl FnOnce(&mut ProxyRoute)) {
        change(&mut self.state.lock());
        self.state.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.change(|way| {
            way.ended = true;
            way.streams.iter().for_each(end);
        });
        // A new connection wakes up the thread that accepts connections.
        let woken = UnixStream::connect(self.socket.join(SOCKET)).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| woken) {
            let _ = acceptor.join();
        }
        let _ = fs::remove_dir_all(&self.socket);
    }
}

impl ProxyState {
    fn lock(&self) -> MutexGuard<'_, ProxyRoute> {
        self.way.lock().expect("nobody panics with the lock")
    }

    /// Adds both ends of a connection to the streams that end with the proxy. Returns false if the proxy has ended.
    fn takes(&self, ends: [&UnixStream; 2]) -> bool {
        let mut way = self.lock();
        way.streams.extend(ends.map(copy_of));
        !way.ended
    }

    /// Returns true if this answer is lost.
    fn loses_answer(&self) -> bool {
        let way = &mut *self.lock();
        let loses = way.loses.as_mut().is_some_and(|(chance, times)| chance.one_in(*times));
        way.lost += usize::from(loses);
        loses
    }

    /// Waits until data that was sent at this time is due. Returns false if the proxy ends first.
    fn due(&self, sent: Instant) -> bool {
        let mut way = self.lock();
        loop {
            let left = way.delay.map(|delay| (sent + delay).saturating_duration_since(Instant::now()));
            way = match left {
                _ if way.ended => return false,
                Some(Duration::ZERO) => return true,
                Some(left) => self.changed.wait_timeout(way, left).expect("nobody panics with the lock").0,
                None => self.changed.wait(way).expect("nobody panics with the lock"),
            };
        }
    }
}

/// Accepts connections until the proxy ends, and returns after all of them have ended.
fn accept(listener: &UnixListener, server: &Path, state: &Arc<ProxyState>) {
    let mut threads = Vec::new();
    while let Ok((client, _)) = listener.accept() {
        // If there is no server, the client's connection ends.
        let server = UnixStream::connect(server);
        if !server.as_ref().map_or_else(|_| !state.lock().ended, |server| state.takes([&client, server])) {
            break;
        }
        let Ok(server) = server else { continue };
        let (sender, receiver) = channel();
        let (from, to) = (copy_of(&server), copy_of(&client));
        let answers = state.clone();
        threads.push(thread::spawn(move || pass_on(from, to, &answers)));
        let (from, state) = (copy_of(&client), state.clone());
        threads.push(thread::spawn(move || note(from, &sender)));
        threads.push(thread::spawn(move || pass_on_late(&receiver, server, &client, &state)));
    }
    threads.into_iter().for_each(|thread| drop(thread.join()));
}

/// Passes on the data that the server sends.
fn pass_on(mut from: UnixStream, mut to: UnixStream, state: &ProxyState) {
    let mut buffer = [0; 8_192];
    let mut login = true;
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if (!login && state.loses_answer()) || to.write_all(&buffer[..length]).is_err() {
            break;
        }
        login = false;
    }
    end(&from);
    end(&to);
}

/// Records the data that a client sends, and the time at which it is sent.
fn note(mut from: UnixStream, sender: &Sender<(Instant, Vec<u8>)>) {
    let mut buffer = [0; 8_192];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if sender.send((Instant::now(), buffer[..length].to_vec())).is_err() {
            break;
        }
    }
}

/// Passes on the recorded data when it is due.
fn pass_on_late(noted: &Receiver<(Instant, Vec<u8>)>, mut to: UnixStream, from: &UnixStream, state: &ProxyState) {
    while let Ok((sent, bytes)) = noted.recv() {
        if !state.due(sent) || to.write_all(&bytes).is_err() {
            break;
        }
    }
    end(&to);
    end(from);
}

fn end(stream: &UnixStream) {
    let _ = stream.shutdown(Shutdown::Both);
}

fn copy_of(stream: &UnixStream) -> UnixStream {
    stream.try_clone().expect("a process may have more files open")
}
