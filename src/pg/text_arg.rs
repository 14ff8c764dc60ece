//! An argument of type `text`, in the encoding of the database.
#![allow(unsafe_code)]

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};

use crate::faults;

/// How many bytes of an invalid text the error message shows.
const SHOWN: usize = 60;

/// A `text` argument as bytes. The type `&str` of pgrx is not used, because it panics on some characters in databases whose
/// encoding is not UTF-8.
#[derive(Clone, Copy)]
pub struct Text<'call>(pub &'call [u8]);

// SAFETY: a text is a varlena of bytes, like a bytea. The slice refers to the argument itself, or to a copy that lives
// in the memory of the call.
unsafe impl<'call> ArgAbi<'call> for Text<'call> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'call>) -> Self {
        // SAFETY: the caller promises a datum of this type that is not null.
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
    /// Returns the text in ASCII, truncated if it is long. The text is in ASCII because an error message must be valid in the
    /// encoding of the database.
    pub fn shown(self) -> String {
        shown(self.0)
    }
}

/// Returns a text in ASCII, truncated if it is long.
pub fn shown(text: &[u8]) -> String {
    let start = &text[..text.len().min(SHOWN)];
    format!("{}{}", start.escape_ascii(), if start.len() < text.len() { "..." } else { "" })
}

/// Returns the number of characters of a text in the encoding of the database.
pub fn characters(text: &[u8]) -> i32 {
    // SAFETY: the pointer and the length describe the text.
    unsafe { pg_sys::pg_mbstrlen_with_len(text.as_ptr().cast(), text.len() as i32) }
}

/// Returns a text that is valid in the encoding of every database. All other characters become question marks.
pub fn ascii(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() && !c.is_ascii_control() { c } else { '?' }).collect()
}

/// Returns a text in UTF-8 as this database can show it. Unless the encoding of the database is UTF-8, characters that are not in ASCII
/// become question marks.
pub fn for_database(text: &str) -> String {
    // SAFETY: the call reads a variable of this process.
    match unsafe { pg_sys::GetDatabaseEncoding() } == pg_sys::pg_enc::PG_UTF8 as i32 {
        true => text.into(),
        false => text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect(),
    }
}
