//! The rules of the registry, in the order of the page docs/fleet-rules.md, and how the need for each of them is shown.

mod claims;
mod failovers;
mod layouts;
mod renewals;
mod reservations;
mod servers;
mod spares;

use crate::bounds::Bounds;
use crate::faults::FleetFault;
use crate::step::Step;

/// What shows that a rule is needed.
pub enum By {
    /// The search finds the shortest schedule within these bounds.
    Search(&'static Bounds),
    /// A schedule that is too long for the search, in a world with the beginning of these bounds. No step can be left out.
    Directed(&'static Bounds, &'static [Step]),
}

pub struct Rule {
    /// The rule is taken away.
    pub fault: FleetFault,
    pub text: &'static str,
    /// What happens then.
    pub fails: &'static str,
    pub by: By,
}

/// A rule without which two servers issue the same ID. The search finds the schedule.
const fn unique(fault: FleetFault, bounds: &'static Bounds, text: &'static str) -> Rule {
    Rule { fault, text, fails: "duplicate", by: By::Search(bounds) }
}

/// A section of the page.
pub struct RuleSection {
    pub title: &'static str,
    pub rules: &'static [Rule],
}

pub const SECTIONS: &[RuleSection] = &[
    RuleSection { title: "Claims", rules: claims::RULES },
    RuleSection { title: "Renewals", rules: renewals::RULES },
    RuleSection { title: "Failovers and restores", rules: failovers::RULES },
    RuleSection { title: "Spare worker IDs", rules: spares::RULES },
    RuleSection { title: "Layouts", rules: layouts::RULES },
    RuleSection { title: "Reservations", rules: reservations::RULES },
    RuleSection { title: "Servers", rules: servers::RULES },
];
