//! Looks up the addresses of a host name. The system function for this cannot be interrupted, and can take half a
//! minute if the name servers do not respond. A separate thread therefore calls it while this process waits on its
//! latch.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use crate::faults;
use crate::pg::background_worker::{Wait, wait_on_socket};
use crate::pg::latch::Readiness;
use crate::pg::query_result::{QueryFailure, Unconnected};

/// The maximum number of threads. A thread can outlive the wait for it, and each thread uses one or two file
/// descriptors. Unlike the connection's descriptor, these descriptors are not reported to PostgreSQL, because they are
/// few and short-lived.
const MAX_THREADS: usize = 8;

/// The number of running threads.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Returns the addresses of a host, in the order in which they should be tried.
pub fn addresses(host: &str, deadline: Instant) -> Result<Vec<String>, QueryFailure> {
    let failed = |error: io::Error| {
        let text = format!("could not translate host name \"{host}\" to address: {error}");
        QueryFailure::NotConnected { text, cause: Unconnected::Unreachable }
    };
    let (woken, receiver) = begin(host.into()).map_err(failed)?;
    match wait_on_socket(woken.as_raw_fd(), Readiness::Read, deadline) {
        Wait::Ready => receiver.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map_err(failed),
        Wait::Late => Err(failed(io::ErrorKind::TimedOut.into())),
        Wait::Interrupted => Err(QueryFailure::Interrupted),
    }
}

type LookupResult = io::Result<Vec<String>>;

/// Starts a thread that looks up the addresses. The returned socket becomes readable when the thread has finished. If
/// the caller stops waiting, the thread still ends by itself.
fn begin(host: String) -> io::Result<(UnixStream, Receiver<LookupResult>)> {
    if THREADS.load(Ordering::Relaxed) >= MAX_THREADS {
        return Err(io::Error::other("earlier requests have no answer yet"));
    }
    let (woken, waker) = UnixStream::pair()?;
    let (sender, receiver) = mpsc::channel();
    THREADS.fetch_add(1, Ordering::Relaxed);
    let thread = without_signals(|| {
        thread::Builder::new().spawn(move || {
            let _ = sender.send(look_up(&host));
            THREADS.fetch_sub(1, Ordering::Relaxed);
            drop(waker);
        })
    });
    if thread.is_err() {
        THREADS.fetch_sub(1, Ordering::Relaxed);
    }
    thread.map(|_| (woken, receiver))
}

/// Looks up the addresses. This function runs in a separate thread, so it must not call PostgreSQL functions.
fn look_up(host: &str) -> LookupResult {
    let found = (host, 0).to_socket_addrs()?.map(|address| match address {
        // A link-local address is valid only together with its interface.
        SocketAddr::V6(address) if address.scope_id() != 0 => format!("{}%{}", address.ip(), address.scope_id()),
        address => address.ip().to_string(),
    });
    Ok(faults::dead_address().into_iter().chain(found).collect())
}

/// Calls a function while all signals are blocked. Threads that the function starts inherit this, so that PostgreSQL's
/// signal handlers run only in the thread that called this function.
fn without_signals<T>(function: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = (MaybeUninit::<libc::sigset_t>::uninit(), MaybeUninit::<libc::sigset_t>::uninit());
    // SAFETY: the first function initializes the set. The second function reads it and initializes the other set.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = function();
    // SAFETY: the set was initialized above. The function fails only if its first argument is invalid.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}
