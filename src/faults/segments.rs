//! Faults in the segments.

use std::sync::OnceLock;

use flake::{Block, Segment};

use super::{Fault, on};

/// Draws from this process's own copy of a segment if [`Fault::BlockPerSession`] is on. The copy starts with the
/// numbers that remain in the shared segment.
pub fn drawn_privately(shared: &Segment) -> Option<i64> {
    static OWN: OnceLock<Segment> = OnceLock::new();
    if !on(Fault::BlockPerSession) {
        return None;
    }
    let own = OWN.get_or_init(|| {
        let (segment, left) = (Segment::default(), shared.left().current);
        segment.open(1, Block { first: left.first, length: left.count.max(1), fetch_below: 1 });
        segment
    });
    own.draw(1).ok().map(|drawn| drawn.number)
}
