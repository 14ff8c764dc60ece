//! Reports to the registry which blocks this server holds. From these reports, the registry can detect that it has lost
//! blocks. From the answers, this server can detect that segments were dropped.

use std::sync::atomic::Ordering::Relaxed as RELAXED;

use crate::faults::{self, Fault};
use crate::message::registry::Trouble;
use crate::message::segment;
use crate::pg::libpq::{Connection, QueryFailure};
use crate::segments::client::Said;
use crate::segments::connections::RequestContext;
use crate::segments::slots::{self as slots, Phase};

/// The number of tags in one report.
const REPORTED: usize = 100;

/// The state of this server's reports.
#[derive(Default)]
pub struct Reports {
    /// Why the last report failed.
    failed: Option<Trouble>,
}

impl Reports {
    /// Reports the tags whose blocks this server holds, over the connection of a heartbeat. If there are none, nothing
    /// is sent. If the report fails, the next heartbeat retries.
    pub fn report(&mut self, connection: &Connection, context: &RequestContext) {
        // If the report was interrupted by a shutdown or a reload of the configuration, the next heartbeat sends it.
        let interrupted = |trouble: &Trouble| matches!(trouble, Trouble::NoAnswer(QueryFailure::Interrupted));
        let failed = Reports::try_report(connection, context).err().filter(|trouble| !interrupted(trouble));
        if let Some(trouble) = &failed
            && self.failed.as_ref().is_none_or(|logged| !logged.is_like(trouble))
        {
            segment::unreported(trouble);
        }
        self.failed = failed;
    }

    fn try_report(connection: &Connection, context: &RequestContext) -> Result<(), Trouble> {
        let open = slots::all().iter().filter_map(|slot| {
            let (name, phase, version, _) = slot.read();
            let (generation, highest) = (slot.facts.generation.load(RELAXED), slot.facts.highest.load(RELAXED));
            (phase == Phase::Open && generation != 0).then_some((slot, version, (name, generation, highest as i64)))
        });
        let open: Vec<_> = open.collect();
        let client = context.client(connection);
        for part in open.chunks(REPORTED) {
            let held: Vec<_> = part.iter().map(|(_, _, held)| held.clone()).collect();
            for said in client.report(&held)? {
                match said {
                    Said::Raised { tag } => segment::raised(&tag),
                    Said::Void { .. } if faults::on(Fault::GenerationIgnored) => {}
                    Said::Void { tag, created_again } => {
                        if let Some((slot, version, _)) = part.iter().find(|(_, _, (name, _, _))| *name == tag) {
                            let tell = if created_again { segment::created_again } else { segment::gone };
                            tell(&tag);
                            slot.free(*version);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
