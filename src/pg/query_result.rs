//! The result of a statement that was sent through libpq. Its size is limited, because the other server might not be a
//! registry.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr::NonNull;

use pq_sys::ExecStatusType;

use crate::pg::conninfo::{MAX_TEXT, text_of};

/// The maximum number of bytes that are kept of an error text.
const MAX_ERROR: usize = 1_000;

/// The maximum number of columns in an answer. A registry's answers have 14.
const MAX_COLUMNS: c_int = 100;

/// Why no answer was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryFailure {
    /// This process must exit or reload its configuration, and has stopped waiting.
    Interrupted,
    /// No connection could be established. `text` is libpq's error message.
    NotConnected { text: String, cause: Unconnected },
    /// The other server raised an error. The detail and the hint can be empty strings.
    Raised { code: String, message: String, detail: String, hint: String },
    /// The statement succeeded with a warning, for example at its COMMIT. Its changes might not be durable.
    Warned { message: String },
    /// The connection was lost, or no answer arrived in time. `text` is libpq's error message, or the reason why the
    /// answer was rejected.
    Broken { text: String },
}

/// Why no connection could be established.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unconnected {
    /// No server responded, or the server refused the connection before it requested a password.
    Unreachable,
    /// The login succeeded, but the session cannot write.
    ReadOnly,
    /// The server refused the connection after it had requested a password: because of the password, the database, a
    /// privilege or a limit.
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

/// A libpq result, which is freed when this value goes out of scope.
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

    /// Returns true if the other server started a copy instead of answering.
    pub fn is_copy(&self) -> bool {
        use ExecStatusType::{PGRES_COPY_BOTH, PGRES_COPY_IN, PGRES_COPY_OUT};
        matches!(self.status(), PGRES_COPY_IN | PGRES_COPY_OUT | PGRES_COPY_BOTH)
    }

    /// Returns the only row, or the reason why there is not exactly one row.
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
        let text = one_line(&text).unwrap_or_else(|| format!("the answer has {rows} rows"));
        Err(QueryFailure::Broken { text })
    }

    /// Copies the row, unless it is longer than any answer of a registry.
    fn row(&self) -> Result<ResultRow, QueryFailure> {
        let raw = self.0.as_ptr();
        // SAFETY: the pointer is a result.
        let columns = unsafe { pq_sys::PQnfields(raw) };
        // SAFETY: the pointer is a result with one row. The column numbers are in range.
        let length = |n: c_int| unsafe { pq_sys::PQgetlength(raw, 0, n) }.unsigned_abs() as usize;
        if columns > MAX_COLUMNS || (0..columns).map(length).sum::<usize>() > MAX_TEXT {
            return Err(QueryFailure::Broken {
                text: "the answer is not one of a registry, because its row is too long".into(),
            });
        }
        // SAFETY: the pointer is a result with one row. The column numbers are in range, and names and values are C
        // strings.
        let column = |n: c_int| unsafe {
            let value = (pq_sys::PQgetisnull(raw, 0, n) == 0).then(|| text_of(pq_sys::PQgetvalue(raw, 0, n)));
            (text_of(pq_sys::PQfname(raw, n)), value)
        };
        Ok(ResultRow((0..columns).map(column).collect()))
    }
}

/// Joins the lines of a message into one, which is truncated if it is long. Returns `None` if the message is empty.
pub fn one_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    Some(cut(line)).filter(|line| !line.is_empty())
}

/// Truncates a text to [`MAX_ERROR`] bytes, so that it fits into one line in the log.
pub fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_ERROR));
    text
}
