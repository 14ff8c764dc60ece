//! Serials: short numbers for people, such as `INV-2026-00042`, made from a template, a period and a number.
//!
//! - *template*: the form of a serial ([`Template`]): literal text, fields of time, and one number.
//! - *period*: the span of civil time that the fields of time in a template can distinguish ([`Period`]). Each period has its own
//!   numbers.
//!
//! Texts are bytes in any encoding in which the bytes of ASCII characters occur only as ASCII characters. This is true of all server
//! encodings of PostgreSQL.

mod period;
mod template;

pub use period::{Civil, Period, Unit};
pub use template::{Field, MAX_DIGITS, MAX_TEMPLATE, NotASerial, Overflow, Template, TemplateError, YearRange};
