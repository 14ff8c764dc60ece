//! This server's identity: the worker ID, datacenter ID, layout and epoch. These settings are read once at server start
//! and are checked together.
//!
//! If an extension's setting has an invalid value, PostgreSQL logs a WARNING and uses the default. A server that issued
//! IDs with a default worker ID could duplicate another server's IDs. For this reason, these four settings are read
//! from the configuration as text before they are defined as PostgreSQL settings, and the server does not start if one
//! of them is invalid.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use flake::{IdFormat, Layout, Limits, Mark, Nanos, Node, Part, Stamp};

use crate::config::{epoch, guc, guc_hooks};
use crate::faults::{self, Fault};
use crate::message::error::Error;
use crate::message::layout::LayoutProblem;
use crate::message::preload::NotPreloaded;
use crate::message::worker_id::WorkerIdProblem;
use crate::pg::{setting, timestamp};

/// The average number of days in a Gregorian year.
pub const YEAR_DAYS: f64 = 365.2425;

/// The values that determine this server's IDs. They come from the configuration and, if there is one, from the
/// registry.
#[derive(Clone)]
pub struct Identity {
    /// The layout and the epoch of the IDs.
    pub format: IdFormat,
    /// The generator's fixed limits, which are derived from the format.
    pub limits: Limits,
    /// This server's worker ID and datacenter ID.
    pub node: Node,
    /// Converts words into this server's IDs.
    pub stamp: Stamp,
    /// False if `snowflake_pg.worker_id` is not set and the registry has not assigned a worker ID. In that case, this
    /// server issues no IDs, and the worker ID is 0.
    pub worker_set: bool,
    /// The number of the worker ID's assignment ([`flake::Assignment`]). It is 0 without a registry.
    pub assignment: u64,
    /// No ID that is issued under this assignment is below this mark.
    pub start: Mark,
    /// True if `snowflake_pg.registry` was set when the server started. In that case, the registry assigns the worker ID.
    pub registry_set: bool,
}

impl Identity {
    /// Returns the first word whose ID is at or above a mark. If there is no such word, returns a word after the
    /// layout's last word.
    pub fn first_word(&self, mark: Mark) -> u64 {
        mark.first_word(&self.stamp, self.limits.last_word())
    }

    /// Returns the start of a word's tick, in microseconds since the Unix epoch.
    pub fn instant(&self, word: u64) -> i128 {
        self.format.instant(word >> self.format.layout.sequence_bits())
    }

    /// Returns this identity with a worker ID that the registry has assigned.
    pub fn assigned(&self, assignment: u64, node: Node, start: Mark) -> Identity {
        let stamp = self.format.layout.stamp(node).expect("the protocol checks the worker ID");
        Identity { node, stamp, worker_set: true, assignment, start, ..self.clone() }
    }

    /// Returns the error that every session raises if neither `snowflake_pg.worker_id` nor `snowflake_pg.registry` is
    /// set.
    pub fn refusal(&self) -> Option<Error> {
        (!self.worker_set && !self.registry_set).then(|| {
            let misnamed = setting::configured(guc::OTHER_WORKER_ID).is_some();
            WorkerIdProblem::Unset { layout: self.format.layout, misnamed }.into()
        })
    }

    /// Returns the server that wrote a mark. Every reservation ends at the end of a tick, so the ID below the mark is
    /// the last ID of a tick and contains the writer's worker ID and datacenter ID. Returns `None` if the mark was set
    /// manually or if there is no ID below the mark.
    pub fn issuer(&self, mark: Mark) -> Option<Node> {
        let last = i64::try_from(mark.value() - 1).ok().filter(|_| mark > Mark::NOTHING_ISSUED)?;
        let parts = self.format.split(last).ok()?;
        (u64::from(parts.sequence) == self.format.layout.max(Part::Sequence)).then_some(parts.node)
    }

    /// Returns the number of years from `now`, a time of the wall clock, until the layout's timestamps are exhausted.
    pub fn years_left(&self, now: Nanos) -> f64 {
        (self.format.end() - timestamp::of(now)) as f64 / (YEAR_DAYS * 86_400e6)
    }

    /// Formats a server's worker ID and datacenter ID for messages.
    pub fn name(&self, node: Node) -> String {
        match self.format.layout.has_datacenter() {
            true => format!("datacenter ID {}, worker ID {}", node.datacenter, node.worker),
            false => format!("worker ID {}", node.worker),
        }
    }
}

static IDENTITY: OnceLock<Identity> = OnceLock::new();

/// The identity with which this process issues IDs. If the server uses a registry, the pointer is null until this
/// process first needs an ID. When the registry assigns a different worker ID, the identity is replaced. The previous
/// identity stays in memory, because references to it can still exist.
static ISSUING: AtomicPtr<Identity> = AtomicPtr::new(std::ptr::null_mut());

/// Returns this server's identity from the configuration, or `None` if the library is not preloaded. If the server uses
/// a registry, this identity has no worker ID, and [`crate::fleet::grant::identity`] returns the identity with the
/// assigned worker ID.
pub fn find() -> Option<&'static Identity> {
    IDENTITY.get()
}

/// Returns the same identity as [`find`]. Raises an error if the library is not preloaded.
#[inline]
pub fn get() -> &'static Identity {
    match IDENTITY.get() {
        Some(identity) => identity,
        None => NotPreloaded.raise(),
    }
}

/// Returns the identity with which this process issues IDs, or `None` if it has none yet.
#[inline]
#[allow(unsafe_code)]
pub fn issuing() -> Option<&'static Identity> {
    // SAFETY: the pointer is null, or it points to a static variable or to a boxed value that is never freed.
    unsafe { ISSUING.load(Ordering::Relaxed).as_ref() }
}

/// Makes this process issue IDs with the given identity.
pub fn issue_with(identity: Identity) -> &'static Identity {
    let identity: &'static Identity = Box::leak(Box::new(identity));
    ISSUING.store(std::ptr::from_ref(identity).cast_mut(), Ordering::Relaxed);
    identity
}

/// Reads and checks the four settings. The postmaster calls this function before the settings are defined. An error
/// keeps the server from starting.
pub fn establish() {
    match read() {
        Ok(identity) => {
            // The postmaster calls this function once, and backends inherit the value.
            if !identity.registry_set {
                issue_with(identity.clone());
            }
            let _ = IDENTITY.set(identity);
        }
        Err(error) => error.raise(),
    }
}

fn read() -> Result<Identity, Error> {
    let text = setting::configured(guc::LAYOUT).unwrap_or_else(|| guc::DEFAULT_LAYOUT.to_string_lossy().into_owned());
    let named = IdFormat::parse(&text).map_err(|error| LayoutProblem::Setting { text, error })?;
    let layout = named.layout;

    let epoch_text = setting::configured(guc::EPOCH).unwrap_or_default();
    let epoch = epoch::parse(&epoch_text)
        .map_err(|problem| LayoutProblem::EpochSetting { text: epoch_text.clone(), problem })?
        .unwrap_or(named.epoch);

    let datacenter = number(Part::Datacenter, guc::DATACENTER_ID, &layout)?.unwrap_or(0);
    let worker = number(Part::Worker, guc::WORKER_ID, &layout)?;
    let registry = setting::configured(guc::REGISTRY).is_some_and(|text| !text.trim().is_empty());
    if let (Some(worker), true) = (worker, registry) {
        return Err(WorkerIdProblem::AndRegistry { worker }.into());
    }
    let node = Node { datacenter, worker: worker.unwrap_or(0) };
    let stamp = layout.stamp(node).expect("the numbers were checked");
    let format = IdFormat { layout, epoch };
    Ok(Identity {
        format,
        limits: Limits::of(&format),
        node,
        stamp,
        assignment: 0,
        start: Mark::NOTHING_ISSUED,
        registry_set: registry,
        worker_set: worker.is_some() || faults::on(Fault::DefaultWorker),
    })
}

/// Returns the number in a setting's text if the number fits into its field. Only decimal digits are accepted.
/// PostgreSQL would read `010` as 8 and round `1.5` to 2, but a server whose worker ID comes from a template must not
/// end up with another server's worker ID.
fn number(part: Part, name: &CStr, layout: &Layout) -> Result<Option<u32>, WorkerIdProblem> {
    let Some(text) = setting::configured(name) else { return Ok(None) };
    let digits = text.trim();
    // pg_settings shows this value if no worker ID is configured. It is accepted so that ALTER SYSTEM can store it.
    if part == Part::Worker && digits == guc_hooks::UNSET.to_string() {
        return Ok(None);
    }
    let max = layout.max(part);
    let decimal = digits == "0" || digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    match digits.parse::<u32>() {
        Ok(number) if decimal && u64::from(number) <= max => Ok(Some(number)),
        _ => Err(WorkerIdProblem::Number { part, text, layout: *layout, max }),
    }
}
