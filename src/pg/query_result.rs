//! The result of a statement that was sent by libpq, with limits, because the other server need not be a registry.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr::NonNull;

use pq_sys::ExecStatusType;

use crate::pg::conninfo::{MAX_TEXT, text_of};

/// The longest text of an error that is kept, in bytes.
const MAX_ERROR: usize = 1_000;

/// The greatest number of columns of an answer. The answers of a registry have twelve.
const MAX_COLUMNS: c_int = 100;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryFailure {
    /// This process must end or read its configuration, and has stopped waiting.
    Interrupted,
    /// There is no connection.
    NotConnected {
        /// What libpq says.
        text: String,
        /// How far the attempt has come.
        cause: Unconnected,
    },
    /// The other server has raised an error.
    Raised {
        /// The SQLSTATE.
        code: String,
        /// The message.
        message: String,
        /// The detail, or an empty string.
        detail: String,
        /// The hint, or an empty string.
        hint: String,
    },
    /// The statement has succeeded with a warning, for example at its COMMIT. What it has changed might not be durable.
    Warned {
        /// The message of the warning.
        message: String,
    },
    /// The connection was lost, or there was no answer in time.
    Broken {
        /// What libpq says, or how long the wait was.
        text: String,
    },
}

/// Why there is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unconnected {
    /// No server answers, or it refuses before it asks for a password.
    Unreachable,
    /// The login has succeeded, but the session cannot write.
    ReadOnly,
    /// The server has refused after it has asked for a password: because of the password, the database, a privilege or a limit.
    Login,
}

/// A row of named columns in text format.
pub struct ResultRow(Vec<(String, Option<String>)>);

impl ResultRow {
    /// Returns the text of a column, or `None` if the column is NULL or does not exist.
    pub fn get(&self, column: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == column).and_then(|(_, value)| value.as_deref())
    }
}

/// A result of libpq, which is freed when this value goes out of scope.
pub struct QueryResult(pub NonNull<pq_sys::PGresult>);

impl Drop for QueryResult {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from libpq, and nothing uses it after this call.
        unsafe { pq_sys::PQclear(self.0.as_ptr()) };
    }
}

impl QueryResult {
    fn status(&self) -> ExecStatusType {
        // SAFETY: the pointer is a result.
        unsafe { pq_sys::PQresultStatus(self.0.as_ptr()) }
    }

    /// Returns true if the other server wants to copy instead of answering.
    pub fn is_copy(&self) -> bool {
        use ExecStatusType::{PGRES_COPY_BOTH, PGRES_COPY_IN, PGRES_COPY_OUT};
        matches!(self.status(), PGRES_COPY_IN | PGRES_COPY_OUT | PGRES_COPY_BOTH)
    }

    /// Returns the only row, or why there is not exactly one.
    pub fn outcome(&self) -> Result<ResultRow, QueryFailure> {
        let raw = self.0.as_ptr();
        // SAFETY: the pointer is a result.
        let rows = unsafe { pq_sys::PQntuples(raw) };
        if self.status() == ExecStatusType::PGRES_TUPLES_OK && rows == 1 {
            return self.row();
        }
        // SAFETY: the pointer is a result, and its fields are null or C strings.
        let field = |code: u8| cut(unsafe { text_of(pq_sys::PQresultErrorField(raw, c_int::from(code))) });
        let (code, message) = (field(pq_sys::PG_DIAG_SQLSTATE), field(pq_sys::PG_DIAG_MESSAGE_PRIMARY));
        if !code.is_empty() {
            let (detail, hint) = (field(pq_sys::PG_DIAG_MESSAGE_DETAIL), field(pq_sys::PG_DIAG_MESSAGE_HINT));
            return Err(QueryFailure::Raised { code, message, detail, hint });
        }
        // SAFETY: the pointer is a result, and its message is a C string.
        let text = unsafe { text_of(pq_sys::PQresultErrorMessage(raw)) };
        match one_line(&text) {
            text if text.is_empty() => Err(QueryFailure::Broken { text: format!("the answer has {rows} rows") }),
            text => Err(QueryFailure::Broken { text: cut(text) }),
        }
    }

    /// Copies the row, unless it is longer than any answer of a registry.
    fn row(&self) -> Result<ResultRow, QueryFailure> {
        let raw = self.0.as_ptr();
        // SAFETY: the pointer is a result.
        let columns = unsafe { pq_sys::PQnfields(raw) };
        // SAFETY: the pointer is a result with one row. The numbers of the columns are in its range.
        let length = |n: c_int| unsafe { pq_sys::PQgetlength(raw, 0, n) }.unsigned_abs() as usize;
        if columns > MAX_COLUMNS || (0..columns).map(length).sum::<usize>() > MAX_TEXT {
            return Err(QueryFailure::Broken {
                text: "the answer is not one of a registry, because its row is too long".into(),
            });
        }
        // SAFETY: as above. Names and values are C strings.
        let column = |n: c_int| unsafe {
            let value = (pq_sys::PQgetisnull(raw, 0, n) == 0).then(|| text_of(pq_sys::PQgetvalue(raw, 0, n)));
            (text_of(pq_sys::PQfname(raw, n)), value)
        };
        Ok(ResultRow((0..columns).map(column).collect()))
    }
}

/// Joins the lines of a message.
pub fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Shortens a text to [`MAX_ERROR`], so that it fits a line of the log.
pub fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_ERROR));
    text
}
