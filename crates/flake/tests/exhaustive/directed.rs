//! Schedules that are too long for the search, step by step.

use crate::bounds::{MARGIN, MINUTE};
use crate::step::Step;

pub const SLICE_SEEN: &[Step] = &[
    Step::FailOver,
    Step::Up(0),
    Step::Keep(0, 2),
    Step::Behind,
    Step::Pass(55 * MINUTE),
    Step::Renew(0),
    Step::FailOverBehind,
    Step::Pass(55 * MINUTE),
    Step::Up(1),
    Step::FailOver,
    Step::Off(0),
    Step::Up(0),
];

pub const STALE_MARGIN: &[Step] = &[
    Step::Up(0),
    Step::FailOver,
    Step::Keep(0, 24),
    Step::Pass(45 * MINUTE + 2),
    Step::RegistryClock(MARGIN),
    Step::Renew(0),
    Step::RegistryClock(0),
    Step::Behind,
    Step::Up(1),
    Step::FailOverBehind,
    Step::Off(0),
    Step::Up(0),
];

pub const CALM_MARGIN: &[Step] = &[
    Step::Up(0),
    Step::FailOver,
    Step::Renew(0),
    Step::Pass(80 * MINUTE + 2),
    Step::RegistryClock(MARGIN),
    Step::Renew(0),
    Step::RegistryClock(0),
    Step::Behind,
    Step::Up(1),
    Step::FailOverBehind,
    Step::RegistryClock(MARGIN),
    Step::Clock(0, MARGIN),
    Step::Off(0),
    Step::Up(0),
];

pub const SPARE_MARGIN: &[Step] = &[
    Step::Up(0),
    Step::FailOver,
    Step::Up(1),
    Step::KeepAll(24),
    Step::Pass(70 * MINUTE - 1),
    Step::RegistryClock(MARGIN),
    Step::Renew(0),
    Step::RegistryClock(0),
    Step::Behind,
    Step::Renew(1),
    Step::Pass(3),
    Step::FailOverBehind,
    Step::Off(0),
    Step::Up(0),
];
