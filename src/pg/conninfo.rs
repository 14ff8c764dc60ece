//! A libpq connection string. This module parses its list of hosts and does the work that libpq's asynchronous
//! functions leave to their caller.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::net::IpAddr;
use std::ptr::{self, NonNull};
use std::time::Duration;

use crate::pg::c_string;

/// How long to wait for a response from an address if neither the connection string nor libpq's other sources specify
/// `connect_timeout`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum effective `connect_timeout`. Longer timeouts are reduced to this value.
const MAX_TIMEOUT: Duration = Duration::from_mins(1);

/// The maximum length of a text that is copied from libpq, in bytes.
pub const MAX_TEXT: usize = 65_536;

/// The parameters that apply unless the connection string overrides them. A writable registry is on a primary, so other
/// servers in a list of hosts are skipped. GSSAPI encryption is turned off, because libpq would otherwise look for the
/// operating system user's credentials.
const DEFAULTS: [(&CStr, &CStr); 3] = [
    (c"fallback_application_name", c"snowflake_pg"),
    (c"gssencmode", c"disable"),
    (c"target_session_attrs", c"read-write"),
];

/// Parameters that make libpq read all options and then refuse to connect, because the last one has an invalid value.
/// No password file is read, because a password is specified.
const UNCONNECTED: [(&CStr, &CStr); 2] = [(c"password", c"unused"), (c"sslmode", c"unknown")];

/// The parameters of one connection. A later parameter overrides an earlier one with the same name.
pub type Parameters = Vec<(&'static CStr, CString)>;

/// A syntactically valid connection string. It does not implement `Debug`, because it can contain a password.
pub struct ConnectionString {
    text: CString,
    /// The servers, in the order in which they are tried.
    pub hosts: Vec<ConnectionHost>,
    /// The time within which each address of each host must respond.
    pub timeout: Duration,
}

/// A server in a connection string. Empty fields are left to libpq.
#[derive(Clone, Default)]
pub struct ConnectionHost {
    name: String,
    address: String,
    port: String,
}

impl ConnectionHost {
    /// Returns the name whose addresses must be looked up. Returns `None` for a host with a known address, and for a
    /// socket.
    pub fn name_without_address(&self) -> Option<&str> {
        let known = !self.address.is_empty() || is_socket(&self.name) || self.name.parse::<IpAddr>().is_ok();
        (!known && !self.name.is_empty()).then_some(self.name.as_str())
    }
}

impl ConnectionString {
    /// Parses a connection string. Does not return the reason why a string is invalid, because the reason can contain
    /// part of a password. For the same reason, a string is also invalid if libpq would interpret part of a password as
    /// a host or a port, because libpq's errors contain the host and the port.
    pub fn parse(text: &str) -> Option<ConnectionString> {
        if has_stray_at(text) {
            return None;
        }
        let text = CString::new(text).ok()?;
        // SAFETY: the text is a C string. libpq allocates the list. It allocates an error message only if the pointer
        // for it is not null.
        Options::own(unsafe { pq_sys::PQconninfoParse(text.as_ptr(), ptr::null_mut()) })?;
        let options = Options::resolve(&text)?;
        let (names, addresses, ports) = (options.get(c"host"), options.get(c"hostaddr"), options.get(c"port"));
        let misread = |name: &str| name.contains('@') && !is_socket(name);
        let is_port = |port: &str| port.trim().bytes().all(|byte| byte.is_ascii_digit());
        if names.split(',').any(misread) || !ports.split(',').all(is_port) {
            return None;
        }
        let hosts =
            hosts(&names, &addresses, &ports, &options.compiled(c"port")).unwrap_or(vec![ConnectionHost::default()]);
        let timeout = match options.get(c"connect_timeout").trim().parse::<u64>() {
            Ok(seconds @ 1..) => Duration::from_secs(seconds).min(MAX_TIMEOUT),
            _ => DEFAULT_TIMEOUT,
        };
        Some(ConnectionString { text, hosts, timeout })
    }

    /// Returns the parameters with which [`start`] connects to a host. If `address` is not empty, it is one of the
    /// host's addresses.
    pub fn parameters(&self, host: &ConnectionHost, address: &str) -> Parameters {
        let address = if address.is_empty() { &host.address } else { address };
        let mut all = parameters(&self.text);
        for (name, value) in [(c"host", host.name.as_str()), (c"hostaddr", address), (c"port", &host.port)] {
            if !value.is_empty() {
                all.push((name, CString::new(value).unwrap_or_default()));
            }
        }
        all.push((c"client_encoding", c"UTF8".into()));
        all
    }
}

/// Starts connecting. Returns `None` if libpq is out of memory.
pub fn start(parameters: &Parameters) -> Option<NonNull<pq_sys::PGconn>> {
    let end = |array: Vec<*const _>| array.into_iter().chain([ptr::null()]).collect::<Vec<_>>();
    let names = end(parameters.iter().map(|(name, _)| name.as_ptr()).collect());
    let values = end(parameters.iter().map(|(_, value)| value.as_ptr()).collect());
    // SAFETY: both arrays contain C strings and end with a null pointer. libpq copies them.
    NonNull::new(unsafe { pq_sys::PQconnectStartParams(names.as_ptr(), values.as_ptr(), 1) })
}

/// Returns the defaults and the connection string. libpq expands the connection string because it is passed as the
/// database name.
fn parameters(text: &CStr) -> Parameters {
    let all = DEFAULTS.into_iter().chain([(c"dbname", text)]);
    all.map(|(name, value)| (name, value.to_owned())).collect()
}

/// Returns true if this host is the directory of a Unix-domain socket, or a socket in the abstract namespace.
fn is_socket(host: &str) -> bool {
    host.trim_start().starts_with(['/', '@'])
}

/// Returns true if a URI contains an `@` between the `@` that, according to libpq, ends the user and password, and the
/// parameters. Such an `@` is part of a password that is not percent-encoded.
fn has_stray_at(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) else {
        return false;
    };
    let rest = match rest.find(['@', '/']) {
        Some(end) if rest[end..].starts_with('@') => &rest[end + 1..],
        _ => rest,
    };
    rest.split('?').next().is_some_and(|rest| rest.contains('@'))
}

/// Splits the lists of names, addresses and ports. libpq tries the next host only after the previous one has refused
/// the connection, and cannot limit the wait for a single host. For this reason, each host gets its own connection.
/// Returns `None` if there is no list, if libpq would reject the lists, or if an entry is empty and its default is
/// known only to libpq.
fn hosts(names: &str, addresses: &str, ports: &str, default_port: &str) -> Option<Vec<ConnectionHost>> {
    let split = |list: &str| -> Vec<String> {
        let entries = list.split(',').map(|entry| entry.trim().to_owned());
        if list.is_empty() { Vec::new() } else { entries.collect() }
    };
    let (names, addresses, ports) = (split(names), split(addresses), split(ports));
    let count = if addresses.is_empty() { names.len() } else { addresses.len() };
    let fits = |list: &Vec<String>| list.is_empty() || list.len() == count;
    if count == 0 || !fits(&names) || !(ports.len() == 1 || fits(&ports)) {
        return None;
    }
    let entry = |list: &Vec<String>, n: usize| list.get(n).cloned().unwrap_or_default();
    let host = |n: usize| {
        let (name, address) = (entry(&names, n), entry(&addresses, n));
        let port = entry(&ports, if ports.len() == 1 { 0 } else { n });
        let host = ConnectionHost {
            // An empty parameter would not override the list in the connection string.
            name: if name.is_empty() { address.clone() } else { name },
            port: if port.is_empty() { default_port.into() } else { port },
            address,
        };
        let unknown =
            host.name.is_empty() || (host.address.is_empty() && !addresses.is_empty() && is_socket(&host.name));
        (!unknown).then_some(host)
    };
    (0..count).map(host).collect()
}

/// The options of a connection and their values.
struct Options(NonNull<pq_sys::PQconninfoOption>);

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: the list comes from libpq, and nothing uses it after this call.
        unsafe { pq_sys::PQconninfoFree(self.0.as_ptr()) };
    }
}

impl Options {
    fn own(list: *mut pq_sys::PQconninfoOption) -> Option<Options> {
        NonNull::new(list).map(Options)
    }

    /// Returns all options, including those from a service file, from the environment, and from libpq's own defaults.
    /// If libpq rejects the connection string, for example because its service does not exist, the values are empty.
    fn resolve(text: &CStr) -> Option<Options> {
        let mut all = parameters(text);
        all.extend(UNCONNECTED.map(|(name, value)| (name, value.to_owned())));
        let connection = start(&all)?;
        // SAFETY: the pointer is a connection, and nothing uses it after it is closed. libpq allocates the list.
        unsafe {
            let list = pq_sys::PQconninfo(connection.as_ptr());
            pq_sys::PQfinish(connection.as_ptr());
            Options::own(list)
        }
    }

    fn find(&self, keyword: &CStr) -> Option<&pq_sys::PQconninfoOption> {
        let mut option = self.0.as_ptr();
        // SAFETY: the list ends with an option without a keyword and is valid as long as `self`. Keywords are C
        // strings.
        unsafe {
            while !(*option).keyword.is_null() {
                if CStr::from_ptr((*option).keyword) == keyword {
                    return Some(&*option);
                }
                option = option.add(1);
            }
        }
        None
    }

    fn get(&self, keyword: &CStr) -> String {
        // SAFETY: the value is a C string or null.
        self.find(keyword).map_or(String::new(), |option| unsafe { text_of(option.val) })
    }

    /// Returns the default that is compiled into libpq.
    fn compiled(&self, keyword: &CStr) -> String {
        // SAFETY: the default is a C string or null.
        self.find(keyword).map_or(String::new(), |option| unsafe { text_of(option.compiled) })
    }
}

/// Copies a text from libpq, up to [`MAX_TEXT`] bytes. A null pointer is treated as an empty string. Bytes that are not
/// valid UTF-8 are replaced.
///
/// # Safety
///
/// `text` is null or points to a C string.
pub unsafe fn text_of(text: *const c_char) -> String {
    // SAFETY: the caller guarantees the same.
    let bytes = unsafe { c_string::bytes(text) }.unwrap_or_default();
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT)]).into_owned()
}
