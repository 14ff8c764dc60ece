//! Servers that are no registry: one that speaks as much of the protocol as a test needs, and one that only accepts connections.

use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;

use cluster::{Cluster, Host};

/// The name of a server's socket for port 5432.
const SOCKET: &str = ".s.PGSQL.5432";

/// A message of the protocol with this type.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a test sends short messages");
    [&[kind], &length.to_be_bytes()[..], body].concat()
}

/// Begins the answer to a statement that returns one column.
pub fn one_column() -> Vec<u8> {
    let column = [b"answer\0".as_slice(), &[0; 6], &25_u32.to_be_bytes(), &[0xff; 6], &[0; 2]].concat();
    let row = message(b'T', &[&1_u16.to_be_bytes(), column.as_slice()].concat());
    [message(b'1', b""), message(b'2', b""), row].concat()
}

/// A row with one value, which is as long as `length`, and contains `sent` bytes.
pub fn row(length: u32, sent: usize) -> Vec<u8> {
    let head = [b"D".as_slice(), &(length + 10).to_be_bytes(), &1_u16.to_be_bytes(), &length.to_be_bytes()].concat();
    [head, vec![b'x'; sent]].concat()
}

/// A server that answers each statement with the same bytes, again and again if `endless`. It lives until the test ends.
pub struct Fake(PathBuf);

impl Fake {
    pub fn start(name: &str, answer: Vec<u8>, endless: bool) -> Fake {
        Fake::serve(name, move |client| serve(client, &answer, endless))
    }

    /// A server whose login does not end, because it reports one parameter after the other.
    pub fn chatty(name: &str) -> Fake {
        Fake::serve(name, |mut client| {
            skip(&mut client)?;
            client.write_all(&message(b'R', &[0; 4]))?;
            loop {
                client.write_all(&message(b'S', b"application_name\0chatty\0"))?;
            }
        })
    }

    fn serve(name: &str, serve: impl Fn(UnixStream) -> io::Result<()> + Clone + Send + 'static) -> Fake {
        let directory = Host::get().socket_dir(name);
        let path = directory.join(SOCKET);
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).expect("a directory of its own can have a socket");
        fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("the mode of a new socket can be set");
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let serve = serve.clone();
                thread::spawn(move || serve(client));
            }
        });
        Fake(directory)
    }

    /// Returns a connection string.
    pub fn string(&self) -> String {
        format!("host={} user=postgres dbname=postgres", self.0.display())
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn serve(mut client: UnixStream, answer: &[u8], endless: bool) -> io::Result<()> {
    // The first message has no type.
    skip(&mut client)?;
    let mut greeting = message(b'R', &[0; 4]);
    for setting in [b"in_hot_standby\0off\0".as_slice(), b"default_transaction_read_only\0off\0"] {
        greeting.extend(message(b'S', setting));
    }
    greeting.extend(message(b'Z', b"I"));
    client.write_all(&greeting)?;
    loop {
        let mut kind = [0];
        client.read_exact(&mut kind)?;
        skip(&mut client)?;
        // The statement ends with Sync.
        if kind != *b"S" {
            continue;
        }
        client.write_all(answer)?;
        if endless {
            loop {
                client.write_all(answer)?;
            }
        }
    }
}

fn skip(client: &mut UnixStream) -> io::Result<()> {
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    io::copy(&mut client.take(u64::from(u32::from_be_bytes(length)) - 4), &mut io::sink()).map(drop)
}

/// Lets a server accept connections by TCP at 127.0.0.1, and returns the port. A second address with the same port, 127.0.0.2, accepts
/// connections and does not answer.
pub fn by_tcp(server: &Cluster) -> (u16, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let silent = TcpListener::bind(("127.0.0.2", port)).expect("the other address is free");
    let socket = server.socket().join(SOCKET);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let _ = relay(client, &socket);
        }
    });
    (port, silent)
}

fn relay(client: TcpStream, socket: &Path) -> io::Result<()> {
    let server = UnixStream::connect(socket)?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    let (mut from, mut to) = (server, client);
    thread::spawn(move || io::copy(&mut from, &mut to));
    Ok(())
}
