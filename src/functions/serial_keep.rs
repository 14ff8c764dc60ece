//! The trigger that keeps statements from writing numbers into a numbered column. Only the trigger that numbers the
//! rows may write numbers to this column.

use std::cell::RefCell;
use std::ffi::CStr;

use pgrx::prelude::*;

use crate::message::argument::ArgumentProblem;
use crate::message::serial_at_commit::NumberProblem;
use crate::pg::fired::{Fired, Timing, TriggerEvent, Version};
use crate::pg::function::Called;
use crate::pg::relation;
use crate::pg::row_version::Written;
use crate::pg::text_arg::shown;
use crate::pg::trigger::TriggerResult;
use crate::pg::triggers::Trigger;

/// The function of the triggers that number rows.
const NUMBERING: &CStr = c"snowflake_number_row";

/// The maximum length, in bytes, of a number that is stored and compared when its row moves to a different partition.
/// No serial is longer. However, a value that was written before the column was numbered can have any length.
const MAX_NUMBER: usize = 1_000;

thread_local! {
    /// The numbers that this session is writing. There can be several, because writing a number can fire a trigger that
    /// numbers rows in other tables.
    static WRITING: RefCell<Vec<OwnNumber>> = const { RefCell::new(Vec::new()) };

    /// The numbers of rows that an UPDATE has removed from a partition. Only the last number of each numbered column is
    /// stored.
    static MOVED: RefCell<Vec<Moved>> = const { RefCell::new(Vec::new()) };
}

/// A number that is about to be written to a version of a row.
struct OwnNumber {
    table: pg_sys::Oid,
    place: pg_sys::ItemPointerData,
    serial: Vec<u8>,
}

/// The number of a row that an UPDATE is moving to a different partition.
struct Moved {
    series: pg_sys::Oid,
    column: Vec<u8>,
    number: Option<Vec<u8>>,
    written: Written,
}

impl Moved {
    /// Stores the number until its row is inserted again, and replaces an earlier one of the same column. Numbers from
    /// earlier transactions are removed.
    fn keep(self) {
        MOVED.with_borrow_mut(|all| {
            let same = |other: &Moved| other.series == self.series && other.column == self.column;
            all.retain(|other| other.written.transaction == self.written.transaction && !same(other));
            all.push(self);
        });
    }

    /// Removes and returns the number that was stored for a column.
    fn take(series: pg_sys::Oid, column: &CStr) -> Option<Moved> {
        MOVED.with_borrow_mut(|all| {
            let place = all.iter().position(|moved| moved.series == series && moved.column == column.to_bytes())?;
            Some(all.swap_remove(place))
        })
    }
}

/// Permits writing one number to one version of a row while this value exists.
pub struct Writing(());

impl Writing {
    /// Starts writing a number.
    pub fn begin(table: pg_sys::Oid, place: pg_sys::ItemPointerData, serial: &[u8]) -> Writing {
        WRITING.with_borrow_mut(|own| own.push(OwnNumber { table, place, serial: serial.to_vec() }));
        Writing(())
    }
}

impl Drop for Writing {
    /// Revokes the permission, even if the update raised an error.
    fn drop(&mut self) {
        WRITING.with_borrow_mut(Vec::pop);
    }
}

/// Returns the number that the numbering trigger is writing to this version of a row.
fn own(table: pg_sys::Oid, place: pg_sys::ItemPointerData) -> Option<Vec<u8>> {
    let address = |place: pg_sys::ItemPointerData| (place.ip_blkid.bi_hi, place.ip_blkid.bi_lo, place.ip_posid);
    WRITING.with_borrow(|own| {
        let own = own.last().filter(|own| own.table == table && address(own.place) == address(place));
        own.map(|own| own.serial.clone())
    })
}

/// Raises an error if a statement inserts, changes or removes a number.
#[pg_extern(sql = "CREATE FUNCTION snowflake_number_keep() RETURNS trigger VOLATILE PARALLEL UNSAFE LANGUAGE c \
                   AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_number_keep(call: Called) -> TriggerResult {
    let not_of_a_number = || -> ! { NumberProblem::NotAKeepTrigger.raise() };
    let Some(fired) = call.fired() else { not_of_a_number() };
    let arguments = fired.arguments();
    let (Timing::AfterRow, [column]) = (fired.timing(), &arguments[..]) else { not_of_a_number() };
    if !relation::fits_name(column) {
        not_of_a_number();
    }
    let number = |version| fired.text(version, column).unwrap_or_else(|_| no_column(&fired, column));
    match fired.event() {
        TriggerEvent::Insert => {
            let series = series(&fired, column);
            let (number, written) = (number(Version::New), fired.inserted());
            match (Moved::take(series, column), &number) {
                // The transaction removed the number from the table and is inserting it again.
                (Some(moved), Some(number))
                    if moved.written == written && moved.number.as_deref() == Some(beginning(number)) => {}
                (Some(Moved { written: from, number: Some(number), .. }), None) if from == written => {
                    refuse(&fired, column, &number, true)
                }
                (_, Some(number)) => refuse(&fired, column, number, false),
                (_, None) => {}
            }
        }
        TriggerEvent::Update => {
            let (old, new) = (number(Version::Old), number(Version::New));
            if new.is_none() {
                series(&fired, column);
            }
            if old != new {
                let own = old.is_none().then(|| own(fired.table(), fired.former_place())).flatten();
                match (own, old, new) {
                    (Some(serial), _, new) if new == Some(&serial) => {}
                    (Some(serial), ..) => {
                        NumberProblem::NotStored { table: table(&fired), serial: shown(&serial) }.raise()
                    }
                    (None, _, Some(new)) => refuse(&fired, column, new, false),
                    (None, old, None) => refuse(&fired, column, old.unwrap_or_default(), true),
                }
            }
        }
        TriggerEvent::Delete => {
            if let (Some(written), Some(series)) = (fired.moved(), numbering(&fired, column).first()) {
                let number = number(Version::Old).map(|number| beginning(number).to_vec());
                Moved { series: *series, column: column.to_bytes().to_vec(), number, written }.keep();
            }
        }
        TriggerEvent::Truncate => not_of_a_number(),
    }
    fired.unchanged()
}

/// Returns the part of a number that is compared.
fn beginning(number: &[u8]) -> &[u8] {
    &number[..number.len().min(MAX_NUMBER)]
}

/// Returns the series that number a column, according to the table's triggers.
fn numbering(fired: &Fired<'_>, column: &CStr) -> Vec<pg_sys::Oid> {
    let schema = fired.schema();
    let numbers = |trigger: &Trigger<'_>| trigger.arguments().first().is_some_and(|first| first == column.to_bytes());
    let triggers = fired.triggers_of_table();
    let numbering = triggers.iter().filter(|trigger| numbers(trigger) && trigger.calls_in(schema, NUMBERING));
    numbering.filter_map(|trigger| trigger.referenced()).collect()
}

/// Returns the series that numbers a column. Raises an error if there is none, because PostgreSQL has dropped the
/// numbering trigger together with its series, or if there are several.
fn series(fired: &Fired<'_>, column: &CStr) -> pg_sys::Oid {
    let series = numbering(fired, column);
    let quoted = || relation::identifier(&relation::utf8(column.to_bytes()));
    match series.first() {
        None => {
            let trigger = relation::identifier(&relation::utf8(fired.name().to_bytes()));
            NumberProblem::Gone { table: table(fired), column: quoted(), trigger }.raise()
        }
        Some(first) if series.iter().any(|other| other != first) => {
            NumberProblem::SeveralSeries { table: table(fired), column: quoted() }.raise()
        }
        Some(series) => *series,
    }
}

fn refuse(fired: &Fired<'_>, column: &CStr, number: &[u8], is_removed: bool) -> ! {
    NumberProblem::Kept {
        table: table(fired),
        column: relation::identifier(&relation::utf8(column.to_bytes())),
        number: shown(number),
        is_removed,
        trigger: relation::identifier(&relation::utf8(fired.name().to_bytes())),
    }
    .raise()
}

fn no_column(fired: &Fired<'_>, name: &CStr) -> ! {
    let column = relation::identifier(&relation::utf8(name.to_bytes()));
    match relation::column_type(fired.table(), name.to_bytes()) {
        Some(_) => NumberProblem::NotText { column }.raise(),
        None => NumberProblem::NoColumn { table: table(fired), column, by_trigger: true }.raise(),
    }
}

fn table(fired: &Fired<'_>) -> String {
    let oid = fired.table();
    relation::of_relation(oid).unwrap_or_else(|| ArgumentProblem::no_table(oid)).quoted()
}
