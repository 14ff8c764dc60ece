//! The SQL functions for segments.

use pgrx::prelude::*;

use crate::config::identity;
use crate::message::segment::SegmentProblem;
use crate::pg::text_arg::{self, Text};
use crate::segments::facts::PERIOD;
use crate::segments::{draw, view};

/// The maximum length of time that the view shows, in microseconds: 1000 years.
const LONGEST: f64 = 31_556_952_000.0 * 1e6;

/// Draws the next number from a segment.
#[pg_extern(volatile, strict, parallel_safe)]
fn snowflake_segment_nextval(tag: Text<'_>) -> i64 {
    next(tag)
}

/// Draws the next number from a segment that does not belong to a series.
#[inline(always)]
pub fn next(tag: Text<'_>) -> i64 {
    if tag.0.starts_with(PERIOD) {
        SegmentProblem::OfSeries.report(&tag.shown()).raise();
    }
    draw::draw(tag, || None)
}

/// Returns the segments from which this server issues numbers, for the view `snowflake_segments`.
#[pg_extern(volatile, parallel_safe)]
#[allow(clippy::type_complexity)]
fn snowflake_segments() -> TableIterator<
    'static,
    (
        name!(tag, String),
        name!(state, &'static str),
        name!(generation, Option<i64>),
        name!(next_number, Option<i64>),
        name!(numbers_left, i64),
        name!(lasts, Option<Interval>),
        name!(rate, f64),
        name!(step, i64),
        name!(fetches, i64),
        name!(waits, i64),
        name!(last_error, Option<String>),
    ),
> {
    // Raises an error if the library is not preloaded.
    identity::get();
    let rows: Vec<_> = view::all()
        .map(|shown| {
            let lasts = (shown.rate > 0.0).then(|| (shown.left as f64 / shown.rate * 1e6).min(LONGEST));
            let lasts =
                lasts.map(|micros| Interval::new(0, 0, micros as i64).expect("microseconds alone are in range"));
            (
                text_arg::for_database(&shown.tag),
                shown.state,
                shown.generation.map(|generation| generation as i64),
                shown.next,
                shown.left as i64,
                lasts,
                shown.rate,
                shown.step as i64,
                shown.fetches as i64,
                shown.waits as i64,
                shown.problem,
            )
        })
        .collect();
    TableIterator::new(rows)
}
