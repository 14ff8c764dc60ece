//! Values of type `text`, in the database's encoding: function results, and parameters and columns of queries.
#![allow(unsafe_code)]

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{FromDatum, IntoDatum, pg_sys};

/// The bytes of a text. pgrx's `String` is not used, because it is always in UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextValue(pub Vec<u8>);

impl From<String> for TextValue {
    /// Converts a string, which must be in ASCII.
    fn from(text: String) -> Self {
        TextValue(text.into_bytes())
    }
}

impl IntoDatum for TextValue {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        // A text is a varlena of bytes, like a bytea.
        self.0.into_datum()
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

impl FromDatum for TextValue {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, kind: pg_sys::Oid) -> Option<Self> {
        // SAFETY: the caller guarantees a datum of this type, which is a varlena of bytes.
        unsafe { Vec::<u8>::from_polymorphic_datum(datum, is_null, kind) }.map(TextValue)
    }
}

// SAFETY: the datum is a varlena that is valid for the duration of the call.
unsafe impl BoxRet for TextValue {
    unsafe fn box_into<'call>(self, call: &mut FcInfo<'call>) -> Datum<'call> {
        match self.into_datum() {
            // SAFETY: the datum is a text that is valid for the duration of the call.
            Some(datum) => unsafe { call.return_raw_datum(datum) },
            None => call.return_null(),
        }
    }
}

// SAFETY: `text` is the type whose values are converted above.
unsafe impl SqlTranslatable for TextValue {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(TextValue);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("text"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::literal("text")));
}
