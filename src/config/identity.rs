//! Who this server is: worker ID, datacenter ID, layout and epoch, read once at server start and checked together.
//!
//! PostgreSQL answers a bad value of an extension's setting with a WARNING and goes on with the default. A server that
//! issued IDs under a default worker ID would repeat another's, so these four are taken as the configuration's text,
//! before PostgreSQL knows them as settings, and what is wrong with them keeps the server from starting.

use std::ffi::CStr;
use std::sync::OnceLock;

use flake::{IdFormat, Layout, Limits, Mark, Nanos, Node, Part, Stamp};

use crate::config::{epoch, guc};
use crate::faults::{self, Fault};
use crate::message::error::{Error, Setting};
use crate::pg::{setting, timestamp};

/// Days of a year of the Gregorian calendar, on average.
pub const YEAR_DAYS: f64 = 365.2425;

/// What the server's configuration says of the IDs it issues.
pub struct Identity {
    /// Layout and epoch.
    pub format: IdFormat,
    /// The generator's fixed limits, derived from the format.
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
        self.format.instant(word >> self.format.layout.sequence_bits())
    }

    /// The error that every session meets if `snowflake_pg.worker_id` is not set; `None` if it is.
    pub fn refusal(&self) -> Option<Error> {
        (!self.worker_set).then(|| Error::WorkerUnset {
            layout: self.format.layout,
            misnamed: setting::configured(guc::OTHER_WORKER_ID).is_some(),
        })
    }

    /// The server that wrote a mark. Reservations end with a tick, so the ID below the mark is the last one of a tick, and contains the
    /// server's numbers. `None` if the mark was set manually, or is above no ID.
    pub fn issuer(&self, mark: Mark) -> Option<Node> {
        let last = i64::try_from(mark.value() - 1).ok().filter(|_| mark > Mark::NOTHING_ISSUED)?;
        let parts = self.format.split(last).ok()?;
        (u64::from(parts.sequence) == self.format.layout.max(Part::Sequence)).then_some(parts.node)
    }

    /// Years until the time of the layout is used up, if the wall clock shows `now`.
    pub fn years_left(&self, now: Nanos) -> f64 {
        (self.format.end() - timestamp::of(now)) as f64 / (YEAR_DAYS * 86_400e6)
    }

    /// A server's numbers as people call them.
    pub fn name(&self, node: Node) -> String {
        match self.format.layout.has_datacenter() {
            true => format!("datacenter ID {}, worker ID {}", node.datacenter, node.worker),
            false => format!("worker ID {}", node.worker),
        }
    }
}

static IDENTITY: OnceLock<Identity> = OnceLock::new();

/// This server's identity; `None` if the library is not preloaded.
pub fn find() -> Option<&'static Identity> {
    IDENTITY.get()
}

/// This server's identity; raises the error that the library is not preloaded where there is none.
#[inline]
pub fn get() -> &'static Identity {
    match IDENTITY.get() {
        Some(identity) => identity,
        None => Error::NotPreloaded.raise(),
    }
}

/// Reads and checks the four settings. In the postmaster, before they are defined; an error ends the server's start.
pub fn establish() {
    match read() {
        Ok(identity) => {
            // A postmaster calls this once; backends inherit the value.
            let _ = IDENTITY.set(identity);
        }
        Err(error) => error.raise(),
    }
}

fn read() -> Result<Identity, Error> {
    let text = setting::configured(guc::LAYOUT).unwrap_or_else(|| guc::DEFAULT_LAYOUT.to_string_lossy().into_owned());
    let named = IdFormat::parse(&text).map_err(|error| Error::Layout { text, error })?;
    let layout = named.layout;

    let epoch_text = setting::configured(guc::EPOCH).unwrap_or_default();
    let epoch = epoch::parse(&epoch_text)
        .map_err(|problem| Error::Epoch { text: epoch_text.clone(), problem })?
        .unwrap_or(named.epoch);

    let datacenter = number(Setting::Datacenter, guc::DATACENTER_ID, &layout)?.unwrap_or(0);
    let worker = number(Setting::Worker, guc::WORKER_ID, &layout)?;
    let node = Node { datacenter, worker: worker.unwrap_or(0) };
    let stamp = layout.stamp(node).expect("the numbers were checked");
    let format = IdFormat { layout, epoch };
    Ok(Identity {
        format,
        limits: Limits::of(&format),
        node,
        stamp,
        worker_set: worker.is_some() || faults::on(Fault::DefaultWorker),
    })
}

/// The number a setting's text stands for, if it fits its field. In decimal digits only: PostgreSQL would read `010` as 8 and
/// round `1.5` to 2, and a server that is numbered by a template must not get another's number.
fn number(setting: Setting, name: &CStr, layout: &Layout) -> Result<Option<u32>, Error> {
    let Some(text) = setting::configured(name) else {
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
        _ => Err(Error::Number { setting, text, layout: *layout, max }),
    }
}
