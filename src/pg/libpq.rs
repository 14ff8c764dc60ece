//! A client for another PostgreSQL server, based on libpq. Every wait is on this process's latch and on the socket, and
//! has a deadline. libpq's own waits would not respond to a shutdown, and would not end if the other server were
//! frozen.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::time::{Duration, Instant};

use pgrx::pg_sys;
use pq_sys::{ConnStatusType, PGTransactionStatusType, PostgresPollingStatusType};

use crate::faults::{self, Fault};
use crate::pg::background_worker::{Wait, interrupted, wait_on_socket};
use crate::pg::conninfo::{self, ConnectionString, Parameters, text_of};
use crate::pg::latch::Readiness;
pub use crate::pg::query_result::{QueryFailure, ResultRow, Unconnected};
use crate::pg::query_result::{QueryResult, cut, one_line};
use crate::pg::resolver;

/// The maximum number of bytes that may arrive during the login and for each statement. Without a limit, a server that
/// is not a registry could use up the memory, so that the operating system would kill a process of this server.
const MAX_RECEIVED: u64 = 4 << 20;

/// PostgreSQL functions whose warnings do not mean that the answer might be lost. Every transaction that writes raises
/// these warnings if a database must be vacuumed.
const HARMLESS: [&str; 2] = ["GetNewTransactionId", "GetNewMultiXactId"];

/// A connection, which is closed when the value is dropped.
pub struct Connection {
    raw: NonNull<pq_sys::PGconn>,
    /// The messages of the warnings that have arrived. libpq writes to this value, so its address must not change.
    warnings: Box<RefCell<Vec<String>>>,
    /// The number of bytes that have been counted during the login or for the statement.
    received: Cell<u64>,
    /// This field is dropped after the connection is closed.
    _descriptor: Descriptor,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from libpq, and nothing uses it after this call. The call does not wait for the
        // other server.
        unsafe { pq_sys::PQfinish(self.raw.as_ptr()) };
    }
}

/// A file descriptor that PostgreSQL counts, so that enough descriptors remain for its own files.
struct Descriptor;

impl Descriptor {
    fn reserve() -> Option<Descriptor> {
        // SAFETY: the call only changes a counter of this process.
        unsafe { pg_sys::AcquireExternalFD() }.then_some(Descriptor)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor was counted by `reserve`.
        unsafe { pg_sys::ReleaseExternalFD() };
    }
}

impl Connection {
    /// Connects to the first host of a connection string that accepts the connection. Each address of each host has its
    /// own deadline. `alive` is called before each wait with a deadline.
    pub fn open(string: &ConnectionString, mut alive: impl FnMut()) -> Result<Connection, QueryFailure> {
        let (mut texts, mut causes) = (Vec::new(), Vec::new());
        for host in &string.hosts {
            alive();
            let addresses = match host.name_without_address() {
                // libpq itself would look up the name without a deadline, and would apply one deadline to all addresses
                // together.
                Some(name) => resolver::addresses(name, Instant::now() + string.timeout),
                None => Ok(vec![String::new()]),
            };
            let addresses = match addresses {
                Ok(addresses) => addresses,
                Err(QueryFailure::NotConnected { text, .. }) => {
                    texts.push(text);
                    continue;
                }
                Err(other) => return Err(other),
            };
            for address in addresses {
                alive();
                match Connection::attempt(&string.parameters(host, &address), string.timeout) {
                    Err(QueryFailure::NotConnected { text, cause }) => {
                        texts.push(text);
                        causes.push(cause);
                    }
                    other => return other,
                }
            }
        }
        // The most useful error is the one from the host whose connection attempt got furthest.
        let cause = causes.into_iter().max().unwrap_or(Unconnected::Unreachable);
        Err(QueryFailure::NotConnected { text: texts.join("; "), cause })
    }

    fn attempt(parameters: &Parameters, timeout: Duration) -> Result<Connection, QueryFailure> {
        if interrupted() {
            return Err(QueryFailure::Interrupted);
        }
        let failed = |text: &str| QueryFailure::NotConnected { text: text.into(), cause: Unconnected::Unreachable };
        let descriptor = Descriptor::reserve().ok_or_else(|| failed("no file descriptor is free"))?;
        let raw = conninfo::start(parameters).ok_or_else(|| failed("out of memory"))?;
        let connection =
            Connection { raw, warnings: Box::default(), received: Cell::default(), _descriptor: descriptor };
        connection.collect_warnings();
        connection.establish(timeout)?;
        Ok(connection)
    }

    fn establish(&self, timeout: Duration) -> Result<(), QueryFailure> {
        let deadline = Instant::now() + timeout;
        // According to libpq's documentation, the first wait is for writing.
        let mut wanted = PostgresPollingStatusType::PGRES_POLLING_WRITING;
        loop {
            // SAFETY: the pointer is a connection.
            if unsafe { pq_sys::PQstatus(self.raw.as_ptr()) } == ConnStatusType::CONNECTION_BAD {
                return Err(self.refused());
            }
            let writing = wanted == PostgresPollingStatusType::PGRES_POLLING_WRITING;
            match self.wait(if writing { Readiness::Write } else { Readiness::Read }, deadline) {
                Ok(()) => {}
                Err(QueryFailure::Broken { .. }) => {
                    let text = format!("{} did not answer within {} s", self.peer(), timeout.as_secs());
                    return Err(QueryFailure::NotConnected { text, cause: Unconnected::Unreachable });
                }
                Err(other) => return Err(other),
            }
            self.count().map_err(|text| QueryFailure::NotConnected { text, cause: Unconnected::Unreachable })?;
            // SAFETY: the pointer is a connection.
            wanted = unsafe { pq_sys::PQconnectPoll(self.raw.as_ptr()) };
            match wanted {
                PostgresPollingStatusType::PGRES_POLLING_OK => break,
                PostgresPollingStatusType::PGRES_POLLING_FAILED => return Err(self.refused()),
                _ => {}
            }
        }
        // SAFETY: the pointer is a connection.
        match unsafe { pq_sys::PQsetnonblocking(self.raw.as_ptr(), 1) } {
            0 => Ok(()),
            _ => Err(self.refused()),
        }
    }

    /// Returns the host, and its address if that is different from the host.
    fn peer(&self) -> String {
        // SAFETY: the pointer is a connection. The results are null or C strings.
        let (host, address) =
            unsafe { (text_of(pq_sys::PQhost(self.raw.as_ptr())), text_of(pq_sys::PQhostaddr(self.raw.as_ptr()))) };
        match address.is_empty() || address == host {
            true => format!("host \"{host}\""),
            false => format!("host \"{host}\" ({address})"),
        }
    }

    /// Sends one statement, which forms its own transaction, and returns the row that the statement returned. After any
    /// error other than [`QueryFailure::Raised`], the connection can no longer be used.
    pub fn row(
        &self,
        sql: &CStr,
        parameters: &[Option<String>],
        patience: Duration,
    ) -> Result<ResultRow, QueryFailure> {
        let deadline = Instant::now() + patience;
        self.warnings.borrow_mut().clear();
        self.received.set(0);
        let texts: Vec<Option<CString>> = parameters
            .iter()
            .map(|value| value.as_ref().map(|text| CString::new(text.as_str()).unwrap_or_default()))
            .collect();
        let values: Vec<_> = texts.iter().map(|text| text.as_ref().map_or(ptr::null(), |text| text.as_ptr())).collect();
        // SAFETY: the pointer is a connection. The array has as many values as the call specifies, each of which is
        // null or a C string. The null pointers mean that the server infers the types and that all values are in text
        // format.
        let sent = unsafe {
            pq_sys::PQsendQueryParams(
                self.raw.as_ptr(),
                sql.as_ptr(),
                values.len() as c_int,
                ptr::null(),
                values.as_ptr(),
                ptr::null(),
                ptr::null(),
                0,
            )
        };
        if sent == 0 {
            return Err(self.broken());
        }
        self.flush(deadline)?;
        let mut found: Option<Result<ResultRow, QueryFailure>> = None;
        while let Some(result) = self.result(deadline)? {
            // A COPY does not end by itself, and libpq would return this result forever.
            if result.is_copy() {
                return Err(QueryFailure::Broken {
                    text: "the server started a COPY instead of returning a row".into(),
                });
            }
            // Only the first error counts, because later errors are its consequences.
            let trusted = faults::on(Fault::CommitIgnored) && found.is_some();
            if !matches!(found, Some(Err(_))) && !trusted {
                found = Some(result.outcome());
            }
        }
        // SAFETY: the pointer is a connection.
        let state = unsafe { pq_sys::PQtransactionStatus(self.raw.as_ptr()) };
        let row = found.unwrap_or_else(|| Err(self.broken()))?;
        if state != PGTransactionStatusType::PQTRANS_IDLE {
            return Err(QueryFailure::Broken { text: "the transaction of the statement did not end".into() });
        }
        match self.warnings.borrow_mut().pop() {
            Some(message) if !faults::on(Fault::WarningTrusted) => Err(QueryFailure::Warned { message }),
            _ => Ok(row),
        }
    }

    fn flush(&self, deadline: Instant) -> Result<(), QueryFailure> {
        loop {
            // SAFETY: the pointer is a connection.
            match unsafe { pq_sys::PQflush(self.raw.as_ptr()) } {
                0 => return Ok(()),
                1 => {
                    // The other server may be waiting for this one to read.
                    self.wait(Readiness::ReadOrWrite, deadline)?;
                    self.consume()?;
                }
                _ => return Err(self.broken()),
            }
        }
    }

    /// Waits for the next result. Returns `None` when there are no more results.
    fn result(&self, deadline: Instant) -> Result<Option<QueryResult>, QueryFailure> {
        // The deadline is checked here because there is nothing to wait for if results arrive fast enough.
        if interrupted() {
            return Err(QueryFailure::Interrupted);
        }
        if Instant::now() >= deadline {
            return Err(late());
        }
        // SAFETY: the pointer is a connection.
        while unsafe { pq_sys::PQisBusy(self.raw.as_ptr()) } == 1 {
            self.wait(Readiness::Read, deadline)?;
            self.consume()?;
        }
        // SAFETY: the pointer is a connection. It is not busy, so the call does not wait.
        Ok(NonNull::new(unsafe { pq_sys::PQgetResult(self.raw.as_ptr()) }).map(QueryResult))
    }

    /// Counts the bytes that have arrived. This function must be called after a successful wait for the socket.
    fn count(&self) -> Result<(), String> {
        // SAFETY: the socket of the connection is open, because a wait for it has succeeded.
        let socket = unsafe { BorrowedFd::borrow_raw(pq_sys::PQsocket(self.raw.as_ptr())) };
        // Bytes that libpq leaves for its next call are counted again. The limit is high enough for this.
        self.received.set(self.received.get() + rustix::io::ioctl_fionread(socket).unwrap_or(0));
        match self.received.get() > MAX_RECEIVED {
            true => Err(format!("the answer is longer than {MAX_RECEIVED} bytes")),
            false => Ok(()),
        }
    }

    fn consume(&self) -> Result<(), QueryFailure> {
        self.count().map_err(|text| QueryFailure::Broken { text })?;
        // SAFETY: the pointer is a connection. The call reads the data that has arrived and does not wait.
        match unsafe { pq_sys::PQconsumeInput(self.raw.as_ptr()) } {
            1 => Ok(()),
            _ => Err(self.broken()),
        }
    }

    /// Waits until the socket is ready. The socket is determined again for each wait, because libpq may have opened a
    /// different one.
    fn wait(&self, readiness: Readiness, deadline: Instant) -> Result<(), QueryFailure> {
        // SAFETY: the pointer is a connection.
        let socket = unsafe { pq_sys::PQsocket(self.raw.as_ptr()) };
        if socket < 0 {
            return Err(self.broken());
        }
        match wait_on_socket(socket, readiness, deadline) {
            Wait::Ready => Ok(()),
            Wait::Late => Err(late()),
            Wait::Interrupted => Err(QueryFailure::Interrupted),
        }
    }

    fn refused(&self) -> QueryFailure {
        // SAFETY: the pointer is a connection.
        let asked = unsafe {
            pq_sys::PQconnectionNeedsPassword(self.raw.as_ptr()) != 0
                || pq_sys::PQconnectionUsedPassword(self.raw.as_ptr()) != 0
        };
        let on = |name| self.parameter(name) == "on";
        let cause = match self.parameter(c"server_version").is_empty() {
            true if asked => Unconnected::Login,
            false if on(c"in_hot_standby") || on(c"default_transaction_read_only") => Unconnected::ReadOnly,
            _ => Unconnected::Unreachable,
        };
        QueryFailure::NotConnected { text: self.error(), cause }
    }

    /// Returns a parameter that the server reports after the login, or an empty string.
    fn parameter(&self, name: &CStr) -> String {
        // SAFETY: the pointer is a connection, and the name is a C string. The result is null or a C string.
        unsafe { text_of(pq_sys::PQparameterStatus(self.raw.as_ptr(), name.as_ptr())) }
    }

    fn broken(&self) -> QueryFailure {
        QueryFailure::Broken { text: self.error() }
    }

    /// Returns libpq's error message as one line. It can contain the host, the port, the user and the database.
    /// [`ConnectionString`] refuses a URI if libpq would mistake part of its password for one of these.
    fn error(&self) -> String {
        // SAFETY: the pointer is a connection, and the result is a C string.
        let text = unsafe { text_of(pq_sys::PQerrorMessage(self.raw.as_ptr())) };
        one_line(&text).unwrap_or_else(|| "libpq did not report a reason".into())
    }

    fn collect_warnings(&self) {
        unsafe extern "C" fn receive(to: *mut c_void, notice: *const pq_sys::PGresult) {
            // SAFETY: libpq passes a valid notice, whose fields are null or C strings.
            let field = |code: u8| unsafe { text_of(pq_sys::PQresultErrorField(notice, c_int::from(code))) };
            let harmless = HARMLESS.contains(&field(pq_sys::PG_DIAG_SOURCE_FUNCTION).as_str());
            if harmless || field(pq_sys::PG_DIAG_SEVERITY_NONLOCALIZED) != "WARNING" {
                return;
            }
            // SAFETY: the pointer refers to the connection's box, which exists until the connection is closed.
            let warnings = unsafe { &*to.cast::<RefCell<Vec<String>>>() };
            if let Ok(mut warnings) = warnings.try_borrow_mut() {
                warnings.push(cut(field(pq_sys::PG_DIAG_MESSAGE_PRIMARY)));
            }
        }
        let to = ptr::from_ref(&*self.warnings).cast_mut().cast();
        // SAFETY: the pointer is a connection. The function does not panic, and it uses its argument only through a
        // shared reference.
        unsafe { pq_sys::PQsetNoticeReceiver(self.raw.as_ptr(), Some(receive), to) };
    }
}

fn late() -> QueryFailure {
    QueryFailure::Broken { text: "no answer was received in time".into() }
}
