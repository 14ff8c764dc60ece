//! Reads the names of tables from the catalog and quotes them for statements, in the database's encoding.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};

use pgrx::prelude::*;

use crate::pg::{c_string, versions};

/// The maximum number of bytes in a name: `NAMEDATALEN` without the terminating zero byte.
pub const MAX_BYTES: usize = pg_sys::NAMEDATALEN as usize - 1;

/// The message for `expect` calls on the results of SPI queries. There is always a result, because PostgreSQL itself
/// raises an error if a query fails.
pub const ANSWERED: &str = "PostgreSQL raises the errors of a query";

/// Returns true if a text is short enough to be the name of a column. A longer text, which could be a gigabyte in size,
/// must not be copied.
pub fn fits_name(text: &CStr) -> bool {
    text.count_bytes() <= MAX_BYTES
}

/// The schema and the name of a table.
pub struct Name {
    schema: String,
    table: String,
    /// The length of the table's name in the database's encoding.
    bytes: usize,
}

/// Returns the current name of a table, view or other relation, or `None` if it does not exist.
pub fn of_relation(oid: pg_sys::Oid) -> Option<Name> {
    named(oid, Name::new)
}

/// Returns the schema and the name of a table in a form that `to_regclass` accepts, in the database's encoding. The
/// rule for quoting depends neither on a setting nor on the PostgreSQL version, because versions differ in their
/// keywords. Returns `None` if the table does not exist.
pub fn identity(table: pg_sys::Oid) -> Option<Vec<u8>> {
    named(table, |schema, name| [in_quotes(schema), in_quotes(name)].join(&b'.'))
}

/// Passes the schema and the name of a relation to `read`, in the database's encoding. Returns `None` if the relation
/// does not exist.
fn named<R>(oid: pg_sys::Oid, read: fn(&[u8], &[u8]) -> R) -> Option<R> {
    // SAFETY: the functions read the catalog caches in a transaction. Each function returns null or a C string that is
    // valid for the duration of this call.
    unsafe {
        let schema = c_string::bytes(pg_sys::get_namespace_name(pg_sys::get_rel_namespace(oid)))?;
        Some(read(schema, c_string::bytes(pg_sys::get_rel_name(oid))?))
    }
}

pub fn owner(relation: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: the call reads the catalog caches in a transaction. This cache has one key, which is an OID.
    let owner = unsafe {
        let (cache, column) = (pg_sys::SysCacheIdentifier::RELOID as i32, pg_sys::Anum_pg_class_relowner);
        let none = pg_sys::Datum::null();
        pg_sys::GetSysCacheOid(cache, column as pg_sys::AttrNumber, pg_sys::Datum::from(relation), none, none, none)
    };
    (owner != pg_sys::InvalidOid).then_some(owner)
}

pub fn is_temporary(relation: pg_sys::Oid) -> bool {
    // SAFETY: the function reads the catalog caches in a transaction.
    unsafe { pg_sys::get_rel_persistence(relation) as u8 == pg_sys::RELPERSISTENCE_TEMP }
}

/// Quotes a name unless it consists only of lower-case letters, digits and underscores.
fn in_quotes(name: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
    if name.iter().all(plain) && !name.first().is_some_and(u8::is_ascii_digit) {
        return name.to_vec();
    }
    let doubled = name.iter().flat_map(|byte| std::iter::repeat_n(*byte, if *byte == b'"' { 2 } else { 1 }));
    std::iter::once(b'"').chain(doubled).chain(std::iter::once(b'"')).collect()
}

/// Returns the type of a column, or its base type if it is a domain. Returns `None` if there is no such column.
pub fn column_type(table: pg_sys::Oid, column: &[u8]) -> Option<pg_sys::Oid> {
    let column = CString::new(column).ok()?;
    // SAFETY: the functions read the catalog caches in a transaction, and the name is a C string in the database's
    // encoding.
    unsafe {
        let number = pg_sys::get_attnum(table, column.as_ptr());
        let found = (number != 0).then(|| pg_sys::get_atttype(table, number));
        found.map(|kind| pg_sys::getBaseType(kind))
    }
}

/// Returns true if a type that is not a domain is a string type. Only a superuser can create string types.
pub fn is_string_type(kind: pg_sys::Oid) -> bool {
    let (mut category, mut is_preferred) = (0, false);
    // SAFETY: the function reads the catalog caches in a transaction. The type exists, because a column has it.
    unsafe { pg_sys::get_type_category_preferred(kind, &raw mut category, &raw mut is_preferred) };
    category as u8 == pg_sys::TYPCATEGORY_STRING
}

/// Returns the kind of a relation, as in `pg_class.relkind`, or 0 if it does not exist.
fn kind(relation: pg_sys::Oid) -> u8 {
    // SAFETY: the function reads the catalog caches in a transaction.
    unsafe { pg_sys::get_rel_relkind(relation) as u8 }
}

/// Returns true if a relation is a table or a partitioned table.
pub fn is_table(relation: pg_sys::Oid) -> bool {
    [pg_sys::RELKIND_RELATION, pg_sys::RELKIND_PARTITIONED_TABLE].contains(&kind(relation))
}

pub fn is_view(relation: pg_sys::Oid) -> bool {
    kind(relation) == pg_sys::RELKIND_VIEW
}

pub fn is_partitioned(relation: pg_sys::Oid) -> bool {
    kind(relation) == pg_sys::RELKIND_PARTITIONED_TABLE
}

/// Returns the name of a column.
pub fn column_name(table: pg_sys::Oid, number: i16) -> Option<Vec<u8>> {
    // SAFETY: the function reads the catalog caches in a transaction. It returns null or a C string that is valid for
    // the duration of this call.
    unsafe { c_string::bytes(pg_sys::get_attname(table, number, true)).map(<[u8]>::to_vec) }
}

/// Returns the declared type of a column, or `None` if the column does not exist or was dropped.
pub fn declared_type(table: pg_sys::Oid, number: i16) -> Option<pg_sys::Oid> {
    // SAFETY: the function reads the catalog caches in a transaction.
    let kind = unsafe { pg_sys::get_atttype(table, number) };
    (kind != pg_sys::InvalidOid).then_some(kind)
}

/// Returns the quoted name of a schema.
pub fn schema_name(schema: pg_sys::Oid) -> Option<String> {
    // SAFETY: the function reads the catalog caches in a transaction. It returns null or a C string that is valid for
    // the duration of this call.
    unsafe { c_string::bytes(pg_sys::get_namespace_name(schema)).map(|name| identifier(&utf8(name))) }
}

/// Locks a table in a mode of LOCK TABLE, without its children. Returns the name of the table, which cannot change until
/// the transaction ends. Returns `None` if the table no longer exists.
pub fn lock(table: pg_sys::Oid, mode: &str) -> Option<Name> {
    lock_named(table, "ONLY", mode)
}

/// Does the same for a table with its children, or for a view with the tables that it reads.
pub fn lock_all(table: pg_sys::Oid, mode: &str) -> Option<Name> {
    lock_named(table, "", mode)
}

fn lock_named(table: pg_sys::Oid, only: &str, mode: &str) -> Option<Name> {
    loop {
        let name = of_relation(table)?;
        Spi::run(&format!("LOCK TABLE {only} {} IN {mode} MODE", name.quoted())).expect(ANSWERED);
        // While this session waited, a different table may have received this name.
        if name.oid() == Some(table) {
            return Some(name);
        }
        // In encodings in which two characters are the same character in UTF-8, this can be the case in every round.
        pgrx::check_for_interrupts!();
    }
}

/// Raises PostgreSQL's error unless the current user owns the relation, which must exist.
pub fn check_owner(table: pg_sys::Oid) {
    if !versions::owns(table) {
        deny(table, pg_sys::AclResult::ACLCHECK_NOT_OWNER);
    }
}

/// Raises PostgreSQL's error for a failed check of a privilege on a relation, which must exist.
pub fn deny(relation: pg_sys::Oid, result: pg_sys::AclResult::Type) {
    // SAFETY: the functions read the catalog caches in a transaction. The name of an existing relation is a C string.
    unsafe {
        let kind = pg_sys::get_relkind_objtype(pg_sys::get_rel_relkind(relation));
        pg_sys::aclcheck_error(result, kind, pg_sys::get_rel_name(relation));
    }
}

/// Converts a text from the database's encoding to UTF-8. PostgreSQL raises an error if the text contains characters
/// that do not exist in UTF-8.
pub fn utf8(text: &[u8]) -> String {
    // SAFETY: the pointer and the length describe the text. The result is the same pointer, or a C string that is valid
    // for the duration of this call.
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

/// Converts a text in the database's encoding to a string constant for a statement.
pub fn literal(text: &[u8]) -> Vec<u8> {
    let mut constant = if text.contains(&b'\\') { b" E'".to_vec() } else { b"'".to_vec() };
    for byte in text {
        // In all server encodings, these bytes are characters of their own.
        if [b'\'', b'\\'].contains(byte) {
            constant.push(*byte);
        }
        constant.push(*byte);
    }
    constant.push(b'\'');
    constant
}

/// Runs a statement in the database's encoding. The statement must not contain zero bytes. Names and texts never
/// contain them.
pub fn run(statement: Vec<u8>) {
    let statement = CString::new(statement).expect("texts contain no zero byte");
    Spi::connect_mut(|client| client.update(statement.as_c_str(), None, &[]).map(drop)).expect(ANSWERED);
}

/// Formats a quoted identifier, or several quoted identifiers that are separated by dots, for messages. The result is
/// in double quotes even if a statement would not need them.
pub fn shown(quoted: &str) -> String {
    if quoted.contains('"') { quoted.into() } else { format!("\"{quoted}\"") }
}

impl Name {
    /// Returns a table name. The table does not need to exist. The arguments are in the database's encoding.
    pub fn new(schema: &[u8], table: &[u8]) -> Name {
        Name { schema: utf8(schema), table: utf8(table), bytes: table.len() }
    }

    /// Returns the schema and the name, quoted for use in a statement.
    pub fn quoted(&self) -> String {
        format!("{}.{}", identifier(&self.schema), identifier(&self.table))
    }

    /// Returns this name followed by `_` and `suffix`, in the same schema. If the new name is too long, the error is
    /// the quoted new name without the schema.
    pub fn sibling(&self, suffix: &str) -> Result<Name, String> {
        let table = format!("{}_{suffix}", self.table);
        let bytes = self.bytes + 1 + suffix.len();
        if bytes > MAX_BYTES {
            return Err(identifier(&table));
        }
        Ok(Name { schema: self.schema.clone(), table, bytes })
    }

    /// Returns the OID of the table that currently has this name, even if the transaction uses an older snapshot.
    pub fn oid(&self) -> Option<pg_sys::Oid> {
        let (schema, table) = (in_database(&self.schema)?, in_database(&self.table)?);
        // SAFETY: the functions read the catalog caches in a transaction, and the names are C strings in the database's
        // encoding.
        let found = unsafe {
            let schema = match schema.as_c_str() {
                temporary if temporary == c"pg_temp" => pg_sys::LookupExplicitNamespace(temporary.as_ptr(), true),
                schema => pg_sys::get_namespace_oid(schema.as_ptr(), true),
            };
            if schema == pg_sys::InvalidOid { schema } else { pg_sys::get_relname_relid(table.as_ptr(), schema) }
        };
        (found != pg_sys::InvalidOid).then_some(found)
    }
}

/// Converts a name to the database's encoding and truncates it in the same way as PostgreSQL.
fn in_database(name: &str) -> Option<CString> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is a C string of this length. The result is the same string, or a C string that is valid for the
    // duration of this call.
    unsafe {
        let length = name.count_bytes() as i32;
        let text = pg_sys::pg_any_to_server(name.as_ptr(), length, pg_sys::pg_enc::PG_UTF8 as i32);
        let bytes = CStr::from_ptr(text).to_bytes();
        let kept = pg_sys::pg_mbcliplen(text, bytes.len() as i32, MAX_BYTES as i32) as usize;
        CString::new(&bytes[..kept.min(bytes.len())]).ok()
    }
}

/// Quotes an identifier for use in a statement. If the database's encoding is not UTF-8, the result is in ASCII. A
/// database without an encoding (SQL_ASCII) accepts the bytes unchanged.
pub fn identifier(name: &str) -> String {
    // SAFETY: the call reads a variable of this process.
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
