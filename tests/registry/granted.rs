//! The ranges of IDs that a registry has granted.

use std::collections::BTreeMap;

use cluster::ensure;
use flake::Node;
use flake::fleet::{Point, Record, Uuid};

/// The highest bound of each worker ID, start and holder.
#[derive(Debug, Default)]
pub struct GrantedRanges(pub BTreeMap<(Node, Point, Uuid), Point>);

impl GrantedRanges {
    pub fn note(&mut self, record: &Record) {
        let bound = self.0.entry((record.node, record.start, record.holder)).or_insert(record.bound);
        *bound = record.bound.max(*bound);
    }

    /// Checks that no ID was granted to two holders.
    pub fn check(&self) -> Result<(), String> {
        let ranges: Vec<_> = self.0.iter().collect();
        let shared = ranges.windows(2).find(|pair| {
            let ((node, start, _), (_, bound)) = (pair[1].0, pair[0]);
            pair[0].0.0 == *node && start <= bound
        });
        ensure!(shared.is_none(), "two holders were granted the same IDs: {shared:?}");
        Ok(())
    }
}
