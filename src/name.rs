//! Names of tables, from the catalog into the text of a statement, in whatever encoding the database has.

use std::ffi::{CStr, CString};

use pgrx::prelude::*;

use crate::failure::Failure;

/// Most bytes of a name (`NAMEDATALEN` less its end).
pub const MAX_BYTES: usize = pg_sys::NAMEDATALEN as usize - 1;

/// A table's schema and name.
pub struct Name {
    schema: String,
    table: String,
    /// Length of the table's name in the database's encoding.
    bytes: usize,
}

/// The name of a table, view or the like, as it is now; `None` where there is none.
#[allow(unsafe_code)]
pub fn of_relation(oid: pg_sys::Oid) -> Option<Name> {
    // SAFETY: looks into the catalog's caches, in a transaction; each gives null or a C string in this call's memory.
    let (schema, table) = unsafe {
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(oid));
        let table = pg_sys::get_rel_name(oid);
        if schema.is_null() || table.is_null() {
            return None;
        }
        (CStr::from_ptr(schema).to_bytes(), CStr::from_ptr(table).to_bytes())
    };
    Some(Name { schema: utf8(schema), table: utf8(table), bytes: table.len() })
}

/// The type of a column, below its domains; `None` where there is no such column.
#[allow(unsafe_code)]
pub fn column_type(table: pg_sys::Oid, column: &[u8]) -> Option<pg_sys::Oid> {
    let column = CString::new(column).ok()?;
    // SAFETY: looks into the catalog's caches, in a transaction; the name is a C string in the database's encoding.
    unsafe {
        let number = pg_sys::get_attnum(table, column.as_ptr());
        let found = (number != 0).then(|| pg_sys::get_atttype(table, number));
        found.map(|kind| pg_sys::getBaseType(kind))
    }
}

/// A text of the database in UTF-8; PostgreSQL raises the error for characters that are not in it.
#[allow(unsafe_code)]
pub fn utf8(text: &[u8]) -> String {
    // SAFETY: the pointer is to as many bytes; what comes back is either that pointer or a C string in this call's memory.
    let bytes = unsafe {
        let length = text.len() as i32;
        let converted = pg_sys::pg_server_to_any(text.as_ptr().cast(), length, pg_sys::pg_enc::PG_UTF8 as i32);
        match std::ptr::eq(converted.cast(), text.as_ptr()) {
            true => text,
            false => CStr::from_ptr(converted).to_bytes(),
        }
    };
    String::from_utf8_lossy(bytes).into_owned()
}

impl Name {
    /// The name as a statement has it.
    pub fn quoted(&self) -> String {
        format!("{}.{}", identifier(&self.schema), identifier(&self.table))
    }

    /// A name in the same schema that goes on with `_` and `suffix`; raises the error that it is too long.
    pub fn sibling(&self, suffix: &str) -> Name {
        let table = format!("{}_{suffix}", self.table);
        let bytes = self.bytes + 1 + suffix.len();
        if bytes > MAX_BYTES {
            Failure::NameTooLong { name: identifier(&table) }.raise();
        }
        Name { schema: self.schema.clone(), table, bytes }
    }

    /// The OID of the table that has this name now.
    pub fn oid(&self) -> Option<pg_sys::Oid> {
        let oid = Spi::get_one_with_args(
            "SELECT (SELECT c.oid
                     FROM pg_catalog.pg_class AS c
                         JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
                     WHERE n.nspname OPERATOR(pg_catalog.=) pg_catalog.convert_from($1, 'UTF8')::pg_catalog.name
                       AND c.relname OPERATOR(pg_catalog.=) pg_catalog.convert_from($2, 'UTF8')::pg_catalog.name)",
            &[self.schema.as_bytes().into(), self.table.as_bytes().into()],
        );
        oid.unwrap_or_else(refused)
    }
}

/// An identifier as a statement has it: in ASCII where the database's encoding is not that of Rust's strings. A database
/// without an encoding takes the bytes as they are.
#[allow(unsafe_code)]
pub fn identifier(name: &str) -> String {
    // SAFETY: reads a variable of this process.
    let encoding = unsafe { pg_sys::GetDatabaseEncoding() } as u32;
    if name.is_ascii() || [pg_sys::pg_enc::PG_UTF8, pg_sys::pg_enc::PG_SQL_ASCII].contains(&encoding) {
        return pgrx::spi::quote_identifier(name);
    }
    let escaped = name.chars().map(|c| match c {
        '"' => "\"\"".into(),
        '\\' => "\\\\".into(),
        c if c.is_ascii() => c.to_string(),
        c => format!("\\+{:06X}", u32::from(c)),
    });
    format!("U&\"{}\"", escaped.collect::<String>())
}

/// PostgreSQL raises the errors of a query itself; this is what pgrx adds.
pub fn refused<T>(_: pgrx::spi::SpiError) -> T {
    Failure::Unreachable("a query without a result").raise()
}
