//! Serials: short numbers for people, such as `INV-2026-00042`. A serial is made from a template, a period and a
//! number.
//!
//! - *template*: the format of a serial ([`Template`]), which consists of literal text, time fields, and one number
//!   field.
//! - *period*: the span of civil time that the time fields of a template can distinguish ([`Period`]). Each period has
//!   its own numbers.
//!
//! Text is passed as bytes. It can be in any encoding in which the bytes of ASCII characters represent only ASCII
//! characters. All server encodings of PostgreSQL meet this condition.

mod period;
mod template;

pub use period::{Civil, Period, Unit};
pub use template::{Field, MAX_DIGITS, MAX_TEMPLATE, NotASerial, Overflow, Template, TemplateError, YearRange};
