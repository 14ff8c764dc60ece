//! The errors that functions raise for arguments that name a table or a column.

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::message::report::Report;
use crate::pg::relation;

/// Why an argument that names something is invalid.
#[derive(Clone, Debug)]
pub enum ArgumentProblem {
    /// An argument is NULL, but must name an object of this kind.
    Null { argument: &'static str, names: &'static str },
    /// A table does not exist.
    NoTable { table: u32 },
    /// The name of a table now belongs to a different table.
    NameChanged { table: String },
    /// A table does not have the column that should contain IDs. The names are quoted.
    NoColumn { table: String, column: String },
    /// A column that should contain IDs is not of an integer type. Its name is quoted.
    NotIntegers { column: String },
    /// A quoted name is longer than PostgreSQL allows. It is the name of a partition or of a column.
    NameTooLong { name: String, partition: bool },
}

impl ArgumentProblem {
    /// Raises the error for a table that does not exist.
    pub fn no_table(table: pg_sys::Oid) -> ! {
        ArgumentProblem::NoTable { table: table.to_u32() }.raise()
    }

    /// Raises the error for a table whose name belongs to a different table, because another session has renamed its
    /// schema.
    pub fn name_changed(table: pg_sys::Oid) -> ! {
        let table = relation::of_relation(table).map(|name| name.quoted()).unwrap_or_default();
        ArgumentProblem::NameChanged { table }.raise()
    }

    pub fn report(&self) -> Report {
        match self {
            ArgumentProblem::Null { argument, names } => Report::of(
                PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
                format!("argument \"{argument}\" must not be null"),
                "",
                format!("Pass the name of an existing {names}."),
            ),
            ArgumentProblem::NoTable { table } => Report::of(
                PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!("relation with OID {table} does not exist"),
                "",
                "Pass the name of an existing table.",
            ),
            ArgumentProblem::NameChanged { table } => Report::of(
                PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
                format!("the name of table {} changed during the call", relation::shown(table)),
                "Another session renamed its schema.",
                "Retry the transaction.",
            ),
            ArgumentProblem::NoColumn { table, column } => no_column(table, column, ""),
            ArgumentProblem::NotIntegers { column } => Report::of(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                format!("column {} is not of an integer type", relation::shown(column)),
                "IDs are stored in columns of type bigint.",
                "Pass a column of type bigint. If the IDs are stored as text, create a view that converts them with \
                 snowflake_from_text(), and pass that view.",
            ),
            ArgumentProblem::NameTooLong { name, partition } => Report::of(
                PgSqlErrorCode::ERRCODE_NAME_TOO_LONG,
                format!("name {} is too long", relation::shown(name)),
                format!("A name can be at most {} bytes long.", relation::MAX_BYTES),
                match partition {
                    true => {
                        "Give the partitioned table a shorter name. The name of each partition begins with the name of \
                        the partitioned table."
                    }
                    false => "Pass the name of an existing column.",
                },
            ),
        }
    }
}

/// Returns the error for a table that does not have the column that the caller specified as the ID column. The names
/// are quoted.
pub fn no_column(table: &str, column: &str, of_type: &str) -> Report {
    Report::of(
        PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
        format!("table {} has no column {}{of_type}", relation::shown(table), relation::shown(column)),
        "",
        "Pass the name of the column that contains the IDs as argument \"key\".",
    )
}
