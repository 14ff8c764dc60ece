//! The registrar reports which blocks this server holds, so that the registry notices if it has forgotten them, and so that this server
//! notices if their segments were dropped.

use std::sync::atomic::Ordering::Relaxed as RELAXED;

use crate::faults::{self, Fault};
use crate::message::registry::Trouble;
use crate::message::segment;
use crate::pg::libpq::{Connection, QueryFailure};
use crate::segments::client::Said;
use crate::segments::connections::RequestContext;
use crate::segments::slots::{self as slots, Phase};

/// How many tags one report contains.
const REPORTED: usize = 100;

/// The reports of this server.
#[derive(Default)]
pub struct Reports {
    /// Why the last report has failed.
    failed: Option<Trouble>,
}

impl Reports {
    /// Reports the tags of which this server holds blocks, on the connection of a heartbeat. Does not send anything if there are none. If
    /// this fails, the next heartbeat retries.
    pub fn report(&mut self, connection: &Connection, context: &RequestContext) {
        // The server is asked to stop or to read its configuration: the next heartbeat reports.
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
