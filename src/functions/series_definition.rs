//! The definition of a series, as its triggers contain it.

use std::ffi::CStr;

use flake::serial::{Period, Template};
use pgrx::prelude::*;

use crate::message::argument::ArgumentProblem;
use crate::message::serial::SerialProblem;
use crate::pg::civil::Zone;
use crate::pg::locked::{self, Lock};
use crate::pg::text_arg;
use crate::pg::{recovery, relation};
use crate::segments::facts::{MAX_ENCODED, MAX_TAG, PERIOD};

/// The function that the triggers on a series call. The arguments of one of these triggers define the series.
pub const TRIGGER_FUNCTION: &CStr = c"snowflake_series_row";

/// The columns of a series, with their types.
pub const COLUMNS: [(&[u8], pg_sys::Oid); 2] = [(b"period", pg_sys::TEXTOID), (b"last_number", pg_sys::INT8OID)];

/// How a series issues numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeriesKind {
    /// The number is drawn as part of the transaction.
    Gapless,
    /// The numbers of each period are a segment. Its tag contains this text, which is in the database's encoding.
    Dense { tag: Vec<u8> },
}

impl SeriesKind {
    /// The names of all kinds, for messages.
    pub const NAMES: &'static str = "dense, gapless";

    /// The maximum length of a tag in UTF-8 bytes. It leaves room for the text of a period.
    pub const MAX_TAG: usize = MAX_TAG - PERIOD.len() - " 2026-11-22 14".len();

    /// Returns the kind with this name, without a tag.
    pub fn of(name: &[u8]) -> Option<SeriesKind> {
        match name {
            b"gapless" => Some(SeriesKind::Gapless),
            b"dense" => Some(SeriesKind::Dense { tag: Vec::new() }),
            _ => None,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            SeriesKind::Gapless => "gapless",
            SeriesKind::Dense { .. } => "dense",
        }
    }
}

/// The definition of a series.
pub struct Definition {
    pub template: Template,
    /// The template as text, in the database's encoding.
    pub form: Vec<u8>,
    pub kind: SeriesKind,
    pub zone: Zone,
    /// The first number of each period.
    pub start: i64,
}

impl Definition {
    /// Parses the arguments of the trigger. Returns `None` if they are not a definition.
    pub fn of<T: AsRef<[u8]>>(arguments: &[T]) -> Option<Definition> {
        let [form, kind, zone, start, tag @ ..] = arguments else { return None };
        let template = Template::parse(form.as_ref()).ok()?;
        let start = str::from_utf8(start.as_ref()).ok()?.parse().ok()?;
        let zone = Zone::of(zone.as_ref())?;
        let kind = match (SeriesKind::of(kind.as_ref())?, tag) {
            (SeriesKind::Gapless, []) => SeriesKind::Gapless,
            (SeriesKind::Dense { .. }, [tag]) if (1..=MAX_ENCODED).contains(&tag.as_ref().len()) => {
                SeriesKind::Dense { tag: tag.as_ref().to_vec() }
            }
            _ => return None,
        };
        Some(Definition { template, form: form.as_ref().to_vec(), kind, zone, start })
    }

    /// Returns the arguments of the trigger, as a list of string constants.
    pub fn arguments(&self) -> Vec<u8> {
        let (zone, start) = (self.zone.name(), self.start.to_string());
        let mut texts = vec![&self.form[..], self.kind.name().as_bytes(), zone.as_bytes(), start.as_bytes()];
        if let SeriesKind::Dense { tag } = &self.kind {
            texts.push(tag);
        }
        texts.into_iter().map(relation::literal).collect::<Vec<_>>().join(&b", "[..])
    }
}

/// An existing series.
pub struct Series {
    pub table: pg_sys::Oid,
    /// The quoted schema and name.
    pub name: String,
    pub definition: Definition,
}

impl Series {
    /// Returns a series. Raises an error if the table is not a series. To draw numbers, the series must be locked for
    /// writing.
    pub fn open(table: pg_sys::Oid, lock: Lock) -> Series {
        if lock == Lock::Writing {
            if recovery::in_recovery() {
                SerialProblem::Standby.raise();
            }
            locked::check_writable(table);
        }
        let arguments = locked::trigger_arguments(table, TRIGGER_FUNCTION, lock);
        let name = relation::of_relation(table).unwrap_or_else(|| ArgumentProblem::no_table(table)).quoted();
        let Some(arguments) = arguments else { SerialProblem::NotASeries { relation: name }.raise() };
        let Some(definition) = Definition::of(&arguments) else { SerialProblem::Definition { series: name }.raise() };
        let has = |(column, kind)| relation::column_type(table, column) == Some(kind);
        if definition.kind == SeriesKind::Gapless && !COLUMNS.into_iter().all(has) {
            SerialProblem::Columns { series: name }.raise();
        }
        Series { table, name, definition }
    }

    /// Returns the period and the number of a serial.
    pub fn read(&self, serial: &[u8]) -> (Period, i64) {
        self.definition.template.read(serial).unwrap_or_else(|error| {
            let (text, template) = (text_arg::shown(serial), text_arg::shown(&self.definition.form));
            SerialProblem::NotASerial { text, series: self.name.clone(), template, error }.raise()
        })
    }
}
