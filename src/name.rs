//! Names of tables, from the catalog into the text of a statement, in whatever encoding the database has.

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

/// The name of a table, view or the like; `None` where there is none.
pub fn of_relation(oid: pg_sys::Oid) -> Option<Name> {
    // As UTF-8 whatever the database has: pgrx makes strings of nothing else. Read only, so on a standby, too.
    let (schema, table, bytes) = Spi::connect(|client| {
        client
            .select(
                "SELECT pg_catalog.convert_to(n.nspname::pg_catalog.text, 'UTF8'),
                        pg_catalog.convert_to(c.relname::pg_catalog.text, 'UTF8'),
                        pg_catalog.octet_length(c.relname::pg_catalog.text)
                 FROM pg_catalog.pg_class AS c
                     JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
                 WHERE c.oid OPERATOR(pg_catalog.=) $1",
                Some(1),
                &[oid.into()],
            )?
            .first()
            .get_three::<Vec<u8>, Vec<u8>, i32>()
    })
    .ok()?;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
    Some(Name { schema: text(schema?)?, table: text(table?)?, bytes: usize::try_from(bytes?).ok()? })
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
