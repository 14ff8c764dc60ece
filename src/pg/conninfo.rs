//! A connection string of libpq: its hosts, and what libpq's asynchronous functions leave to their caller.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::net::IpAddr;
use std::ptr::{self, NonNull};
use std::time::Duration;

/// How long one address has to answer if neither the connection string nor libpq's other sources contain `connect_timeout`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest `connect_timeout` that has an effect. A longer one counts as this one.
const MAX_TIMEOUT: Duration = Duration::from_mins(1);

/// The longest text of libpq that is copied, in bytes.
pub const MAX_TEXT: usize = 65_536;

/// What applies unless the connection string says otherwise. A registry that can be written is on a primary, so other servers in a
/// list of hosts are passed over. Encryption by GSSAPI is off, because libpq would look for credentials of the operating system's
/// user.
const DEFAULTS: [(&CStr, &CStr); 3] = [
    (c"fallback_application_name", c"snowflake_pg"),
    (c"gssencmode", c"disable"),
    (c"target_session_attrs", c"read-write"),
];

/// The parameters with which libpq reads all options and then refuses to connect, because the last one has an invalid value. It reads
/// no password file, because it has a password.
const UNCONNECTED: [(&CStr, &CStr); 2] = [(c"password", c"unused"), (c"sslmode", c"unknown")];

/// The parameters of one connection. A later parameter replaces an earlier one with the same name.
pub type Parameters = Vec<(&'static CStr, CString)>;

/// A connection string whose syntax is right. It has no `Debug`, because it can contain a password.
pub struct ConnectionString {
    text: CString,
    /// The servers, in the order in which they are tried.
    pub hosts: Vec<ConnectionHost>,
    /// How long each address of each host has to answer.
    pub timeout: Duration,
}

/// One server of a connection string. An empty field is left to libpq.
#[derive(Clone, Default)]
pub struct ConnectionHost {
    name: String,
    address: String,
    port: String,
}

impl ConnectionHost {
    /// Returns the name whose addresses must be looked up. A host with an address has none, and neither does a socket.
    pub fn name_without_address(&self) -> Option<&str> {
        let known = !self.address.is_empty() || is_socket(&self.name) || self.name.parse::<IpAddr>().is_ok();
        (!known && !self.name.is_empty()).then_some(self.name.as_str())
    }
}

impl ConnectionString {
    /// Parses a connection string. The reason why it is wrong is not returned, because it can contain a part of a password. For the
    /// same reason, a string is wrong if libpq takes a part of a password for a host or a port, which its errors name.
    pub fn parse(text: &str) -> Option<ConnectionString> {
        if has_stray_at(text) {
            return None;
        }
        let text = CString::new(text).ok()?;
        // SAFETY: the text is a C string. libpq allocates the list, and an error text only if its pointer is not null.
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

    /// Returns the parameters with which [`start`] connects to a host. If `address` is not empty, it is an address of the host.
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

/// Begins to connect. Returns `None` if there is no memory.
pub fn start(parameters: &Parameters) -> Option<NonNull<pq_sys::PGconn>> {
    let end = |array: Vec<*const _>| array.into_iter().chain([ptr::null()]).collect::<Vec<_>>();
    let names = end(parameters.iter().map(|(name, _)| name.as_ptr()).collect());
    let values = end(parameters.iter().map(|(_, value)| value.as_ptr()).collect());
    // SAFETY: both arrays contain C strings and end with a null pointer. libpq copies them.
    NonNull::new(unsafe { pq_sys::PQconnectStartParams(names.as_ptr(), values.as_ptr(), 1) })
}

/// Returns the defaults and the connection string, which libpq expands because it is the name of the database.
fn parameters(text: &CStr) -> Parameters {
    let all = DEFAULTS.into_iter().chain([(c"dbname", text)]);
    all.map(|(name, value)| (name, value.to_owned())).collect()
}

/// Returns true if this host is the directory of a socket, or a socket in the abstract namespace.
fn is_socket(host: &str) -> bool {
    host.trim_start().starts_with(['/', '@'])
}

/// Returns true if a URI contains an `@` between the one that ends the user and password, as libpq finds it, and the parameters. It
/// is then part of a password that is not percent-encoded.
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

/// Splits the lists of names, addresses and ports. libpq goes to the next host only when the previous one has refused, and cannot be
/// told to stop waiting for one host. Therefore, each host gets a connection of its own. Returns `None` if there is no list, if libpq
/// would refuse the lists, or if an entry is empty for which only libpq knows the default.
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
            // An empty parameter would not replace the list in the connection string.
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

/// The options of a connection, with their values.
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

    /// Returns all options, also those from a service file, from the environment, and libpq's own defaults. If libpq refuses the
    /// connection string, for example because its service does not exist, the values are empty.
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
        // SAFETY: the list ends with an option without a keyword, and lives as long as `self`. Keywords are C strings.
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
        // SAFETY: the value is a C string, or null.
        self.find(keyword).map_or(String::new(), |option| unsafe { text_of(option.val) })
    }

    /// Returns the default that is compiled into libpq.
    fn compiled(&self, keyword: &CStr) -> String {
        // SAFETY: the default is a C string, or null.
        self.find(keyword).map_or(String::new(), |option| unsafe { text_of(option.compiled) })
    }
}

/// Copies a text of libpq, up to [`MAX_TEXT`]. A null pointer is an empty text, and bytes that are not UTF-8 are replaced.
///
/// # Safety
///
/// `text` is null or points to a C string.
pub unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the pointer is not null, and the caller guarantees that it then points to a C string.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT)]).into_owned()
}
