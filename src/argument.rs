//! Arguments that are read with care: texts in whatever encoding the database has, layouts and epochs.

use flake::{Epoch, LayoutError, Scheme};
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::prelude::*;

use crate::failure::{EpochProblem, Failure};
use crate::name;
use crate::timestamp::instant;

/// Characters of a refused text that its error shows.
const SHOWN: usize = 60;

/// Longest text that is read as a layout, four times the longest that is printed: nothing is to be allocated for one of
/// a gigabyte, for where memory is short Rust ends the process.
const MAX_LAYOUT: usize = 100;

/// A `text`, as bytes: pgrx's `&str` panics on characters that a database in another encoding than UTF-8 can hold.
#[derive(Clone, Copy)]
pub struct Text<'call>(pub &'call [u8]);

// SAFETY: a text is a varlena of bytes like a bytea, whose slice this is: of the argument itself, or of a copy that lives in
// the memory of the call.
#[allow(unsafe_code)]
unsafe impl<'call> ArgAbi<'call> for Text<'call> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'call>) -> Self {
        // SAFETY: the caller promises a datum of this type that is not null.
        let bytes = unsafe { arg.unbox_arg_using_from_datum::<&[u8]>() };
        Text(bytes.unwrap_or_else(|| Failure::Unreachable("a null text").raise()))
    }
}

// SAFETY: `text` is the type that the implementation above unboxes.
#[allow(unsafe_code)]
unsafe impl SqlTranslatable for Text<'_> {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(Text);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("text"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Err(ReturnsError::Datum);
}

impl Text<'_> {
    /// The layout this names, with the epoch that goes with it.
    pub fn scheme(self) -> Scheme {
        let short = (self.0.len() <= MAX_LAYOUT).then_some(self.0);
        let text = short.and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.map_or(Err(LayoutError::Malformed), Scheme::parse)
            .unwrap_or_else(|error| Failure::LayoutArgument { text: self.shown(), error }.raise())
    }

    /// The layout this names, with an epoch of its own.
    pub fn scheme_since(self, epoch: TimestampWithTimeZone) -> Scheme {
        Scheme { epoch: since(epoch), ..self.scheme() }
    }

    /// The name this is, in UTF-8; PostgreSQL raises the error for characters that are not in it.
    pub fn name(self) -> String {
        if self.0.len() > name::MAX_BYTES {
            Failure::NameTooLong { name: format!("\"{}\"", self.shown()) }.raise();
        }
        name::utf8(self.0)
    }

    /// The text in ASCII, cut where it is long: an error's message is in the database's encoding, too.
    pub fn shown(self) -> String {
        let start = &self.0[..self.0.len().min(SHOWN)];
        format!("{}{}", start.escape_ascii(), if start.len() < self.0.len() { "..." } else { "" })
    }
}

/// The epoch an argument means.
fn since(at: TimestampWithTimeZone) -> Epoch {
    let at = instant(at);
    let refuse = |problem| Failure::EpochArgument { at, problem }.raise();
    let ms = i64::try_from(at.div_euclid(1_000)).ok().and_then(Epoch::from_unix_ms);
    let epoch = ms.unwrap_or_else(|| refuse(EpochProblem::Range));
    if at.rem_euclid(1_000) == 0 { epoch } else { refuse(EpochProblem::Fraction) }
}
