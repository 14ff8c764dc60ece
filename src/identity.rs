//! Who this server is: worker ID, datacenter ID, layout and epoch, read once at server start and checked together.
//!
//! PostgreSQL answers a bad value of an extension's setting with a WARNING and goes on with the default. A server that
//! issued IDs under a default worker ID would repeat another's, so these four are taken as the configuration's text,
//! before PostgreSQL knows them as settings, and what is wrong with them keeps the server from starting.

use std::ffi::CStr;
use std::sync::OnceLock;

use flake::{Epoch, Layout, Limits, Mark, Node, Part, Scheme, Stamp};
use pgrx::pg_sys;

use crate::failure::{EpochProblem, Failure, Setting};
use crate::faults::{self, Fault};
use crate::guc;

/// What the server's configuration says of the IDs it issues.
pub struct Identity {
    /// Layout and epoch.
    pub scheme: Scheme,
    /// The generator's fixed limits, derived from the scheme.
    pub limits: Limits,
    /// This server's numbers.
    pub node: Node,
    /// What makes words into this server's IDs.
    pub stamp: Stamp,
    /// False while `snowflake_pg.worker_id` is not set, and then nothing is issued.
    pub worker_set: bool,
}

impl Identity {
    /// The first word whose ID is at or above a mark; past the layout's last where there is none.
    pub fn first_word(&self, mark: Mark) -> u64 {
        mark.first_word(&self.stamp, self.limits.last_word())
    }

    /// When the tick of a word begins, in microseconds since the Unix epoch.
    pub fn instant(&self, word: u64) -> i128 {
        self.scheme.instant(word >> self.scheme.layout.sequence_bits())
    }

    /// A server's numbers as people call them.
    pub fn name(&self, node: Node) -> String {
        match self.scheme.layout.has_datacenter() {
            true => format!("datacenter ID {}, worker ID {}", node.datacenter, node.worker),
            false => format!("worker ID {}", node.worker),
        }
    }
}

static IDENTITY: OnceLock<Identity> = OnceLock::new();

/// This server's identity; raises the error that the library is not preloaded where there is none.
#[inline]
pub fn get() -> &'static Identity {
    match IDENTITY.get() {
        Some(identity) => identity,
        None => Failure::NotPreloaded.raise(),
    }
}

/// Reads and checks the four settings. In the postmaster, before they are defined; an error ends the server's start.
pub fn establish() {
    match read() {
        Ok(identity) => {
            // A postmaster calls this once; backends inherit the value.
            let _ = IDENTITY.set(identity);
        }
        Err(failure) => failure.raise(),
    }
}

/// The epoch a text means: whole milliseconds since 1970, or ISO 8601 with `Z` or an offset; `None` for an empty text,
/// which leaves it to the layout.
pub fn parse_epoch(text: &str) -> Result<Option<Epoch>, EpochProblem> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let ms = if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        text.parse().map_err(|_| EpochProblem::Range)?
    } else {
        let instant: jiff::Timestamp = text.parse().map_err(|_| match text.parse::<jiff::civil::DateTime>() {
            Ok(_) => EpochProblem::NoZone,
            Err(_) => EpochProblem::Malformed,
        })?;
        if instant.subsec_nanosecond() % 1_000_000 != 0 {
            return Err(EpochProblem::Fraction);
        }
        instant.as_millisecond()
    };
    Epoch::from_unix_ms(ms).map(Some).ok_or(EpochProblem::Range)
}

fn read() -> Result<Identity, Failure> {
    let text = configured(guc::LAYOUT).unwrap_or_else(|| guc::DEFAULT_LAYOUT.to_string_lossy().into_owned());
    let named = Scheme::parse(&text).map_err(|error| Failure::Layout { text, error })?;
    let layout = named.layout;

    let epoch_text = configured(guc::EPOCH).unwrap_or_default();
    let epoch = parse_epoch(&epoch_text)
        .map_err(|problem| Failure::Epoch { text: epoch_text.clone(), problem })?
        .unwrap_or(named.epoch);

    let datacenter = number(Setting::Datacenter, guc::DATACENTER_ID, &layout)?.unwrap_or(0);
    let worker = number(Setting::Worker, guc::WORKER_ID, &layout)?;
    let node = Node { datacenter, worker: worker.unwrap_or(0) };
    let stamp = layout.stamp(node).map_err(|_| Failure::Unreachable("a checked number that does not fit"))?;
    let scheme = Scheme { layout, epoch };
    Ok(Identity {
        scheme,
        limits: Limits::of(&scheme),
        node,
        stamp,
        worker_set: worker.is_some() || faults::on(Fault::DefaultWorker),
    })
}

/// The number a setting's text stands for, if it fits its field. In decimal digits only: PostgreSQL would read `010` as 8 and
/// round `1.5` to 2, and a server that is numbered by a template must not get another's number.
fn number(setting: Setting, name: &CStr, layout: &Layout) -> Result<Option<u32>, Failure> {
    let Some(text) = configured(name) else {
        return Ok(None);
    };
    let digits = text.trim();
    // What pg_settings shows while it is not set, and so what ALTER SYSTEM lets a user write.
    if setting == Setting::Worker && digits == guc::UNSET.to_string() {
        return Ok(None);
    }
    let max = layout.max(match setting {
        Setting::Datacenter => Part::Datacenter,
        Setting::Worker => Part::Worker,
    });
    let decimal = digits == "0" || digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    match digits.parse::<u32>() {
        Ok(number) if decimal && u64::from(number) <= max => Ok(Some(number)),
        _ => Err(Failure::Number { setting, text, layout: *layout, max }),
    }
}

/// A setting's text as the configuration files or the command line give it, `None` where they do not name it.
#[allow(unsafe_code)]
fn configured(name: &CStr) -> Option<String> {
    // SAFETY: the name is a C string; with missing_ok an unknown setting is a null pointer, not an error.
    let text = unsafe { pg_sys::GetConfigOption(name.as_ptr(), true, false) };
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, so it is a C string that stays valid until the setting changes; copied at once.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
