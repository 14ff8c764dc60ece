//! Faults of the segments.

use std::sync::OnceLock;

use flake::{Block, Segment};

use super::{Fault, on};

/// Draws from a segment of this process if [`Fault::BlockPerSession`] is on. It begins with what is left of the shared one.
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
