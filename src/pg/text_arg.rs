//! Arguments of type `text`, in the database's encoding.
#![allow(unsafe_code)]

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};

use crate::faults;

/// The number of bytes of an invalid text that the error message shows.
const SHOWN: usize = 60;

/// A `text` argument as bytes. pgrx's `&str` is not used, because in databases whose encoding is not UTF-8, it panics
/// on some characters.
#[derive(Clone, Copy)]
pub struct Text<'call>(pub &'call [u8]);

// SAFETY: a text is a varlena of bytes, like a bytea. The slice refers to the argument itself, or to a copy that is
// valid for the duration of the call.
unsafe impl<'call> ArgAbi<'call> for Text<'call> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'call>) -> Self {
        // SAFETY: the caller guarantees a datum of this type that is not null.
        let bytes = unsafe { arg.unbox_arg_using_from_datum::<&[u8]>() };
        Text(faults::argument_copied(bytes.expect("the argument is not null")))
    }
}

// SAFETY: `text` is the type that the implementation above unboxes.
unsafe impl SqlTranslatable for Text<'_> {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(Text);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("text"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Err(ReturnsError::Datum);
}

impl Text<'_> {
    /// Converts the text to ASCII and truncates it if it is long. Error messages must be valid in the database's
    /// encoding.
    pub fn shown(self) -> String {
        shown(self.0)
    }
}

/// Converts a text to ASCII and truncates it if it is long.
pub fn shown(text: &[u8]) -> String {
    let start = &text[..text.len().min(SHOWN)];
    format!("{}{}", start.escape_ascii(), if start.len() < text.len() { "..." } else { "" })
}

/// Returns the number of characters of a text in the database's encoding.
pub fn characters(text: &[u8]) -> i32 {
    // SAFETY: the pointer and the length describe the text.
    unsafe { pg_sys::pg_mbstrlen_with_len(text.as_ptr().cast(), text.len() as i32) }
}

/// Converts a text to a form that is valid in the encoding of every database. Control characters and characters outside
/// ASCII become question marks.
pub fn ascii(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() && !c.is_ascii_control() { c } else { '?' }).collect()
}

/// Converts a UTF-8 text to a form that this database can show. Unless the database's encoding is UTF-8, characters
/// outside ASCII become question marks.
pub fn for_database(text: &str) -> String {
    // SAFETY: the call reads a variable of this process.
    match unsafe { pg_sys::GetDatabaseEncoding() } == pg_sys::pg_enc::PG_UTF8 as i32 {
        true => text.into(),
        false => text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect(),
    }
}
