//! A service of Kubernetes, as the operator uses it for the primary.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// A service: an address whose connections are passed on to the pod to which it leads at this moment.
pub struct PodService {
    pub address: String,
    way: Arc<Mutex<ServiceTarget>>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct ServiceTarget {
    target: String,
    ended: bool,
    /// Both ends of every connection, which are needed to end the connections.
    streams: Vec<TcpStream>,
}

impl PodService {
    /// Starts a service that leads nowhere.
    pub fn new(address: &str) -> PodService {
        let listener = TcpListener::bind((address, 5432)).expect("an address of its own");
        let way = Arc::new(Mutex::new(ServiceTarget::default()));
        let shared = way.clone();
        PodService { address: address.into(), way, acceptor: Some(thread::spawn(move || accept(&listener, &shared))) }
    }

    /// Makes new connections lead to this address, and ends all others, as if the node had been cut off to which they lead. An empty
    /// address leads nowhere.
    pub fn lead_to(&self, address: &str) {
        let mut way = self.way.lock().expect("nobody panics with it");
        way.target = address.into();
        way.streams.drain(..).for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }

    pub fn leads_to(&self) -> String {
        self.way.lock().expect("nobody panics with it").target.clone()
    }
}

impl Drop for PodService {
    fn drop(&mut self) {
        self.lead_to("");
        self.way.lock().expect("nobody panics with it").ended = true;
        // A new connection wakes up the thread that accepts connections.
        let woken = TcpStream::connect((self.address.as_str(), 5432)).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| woken) {
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, way: &Mutex<ServiceTarget>) {
    for client in listener.incoming().flatten() {
        let mut way = way.lock().expect("nobody panics with it");
        if way.ended {
            break;
        }
        // If there is no pod, the client's connection ends.
        let Ok(server) = TcpStream::connect((way.target.as_str(), 5432)) else { continue };
        for (from, to) in [(&client, &server), (&server, &client)] {
            let copy = |stream: &TcpStream| stream.try_clone().expect("a process may have more files open");
            let (mut from, mut to) = (copy(from), copy(to));
            way.streams.push(copy(&from));
            thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    }
}
