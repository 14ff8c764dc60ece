//! Interprets `text` arguments, each of which is a layout (with its own epoch or a different one) or the name of a
//! column.

use flake::{Epoch, IdFormat, LayoutError};
use pgrx::prelude::*;

use crate::message::argument::ArgumentProblem;
use crate::message::layout::{EpochProblem, LayoutProblem};
use crate::pg::relation;
use crate::pg::text_arg::Text;
use crate::pg::timestamp::instant;

/// The maximum length of a string that is parsed as a layout. It is four times the length of the longest layout that is
/// printed. A longer string, which could be a gigabyte in size, is refused before memory is allocated for it, because
/// Rust aborts the process when it runs out of memory.
const MAX_LAYOUT: usize = 100;

impl Text<'_> {
    /// Returns the layout that this text specifies, with the layout's own epoch.
    pub fn format(self) -> IdFormat {
        let short = (self.0.len() <= MAX_LAYOUT).then_some(self.0);
        let text = short.and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.map_or(Err(LayoutError::Malformed), IdFormat::parse)
            .unwrap_or_else(|error| LayoutProblem::Argument { text: self.shown(), error }.raise())
    }

    /// Returns the layout that this text specifies, with the given epoch.
    pub fn format_since(self, epoch: TimestampWithTimeZone) -> IdFormat {
        IdFormat { epoch: since(epoch), ..self.format() }
    }

    /// Returns this text as a name in UTF-8. PostgreSQL raises an error if the text contains characters that do not
    /// exist in UTF-8.
    pub fn name(self) -> String {
        if self.0.len() > relation::MAX_BYTES {
            ArgumentProblem::NameTooLong { name: format!("\"{}\"", self.shown()), partition: false }.raise();
        }
        relation::utf8(self.0)
    }
}

/// Returns the epoch that an argument specifies.
fn since(at: TimestampWithTimeZone) -> Epoch {
    let at = instant(at);
    let refuse = |problem| LayoutProblem::EpochArgument { at, problem }.raise();
    let ms = i64::try_from(at.div_euclid(1_000)).ok().and_then(Epoch::from_unix_ms);
    let epoch = ms.unwrap_or_else(|| refuse(EpochProblem::Range));
    if at.rem_euclid(1_000) == 0 { epoch } else { refuse(EpochProblem::Fraction) }
}
