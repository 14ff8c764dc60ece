//! The data that PostgreSQL passes to a trigger function: the event, the row before and after it, and the arguments of
//! the trigger.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::datum::Date;
use pgrx::prelude::*;

use crate::pg::function::Called;
use crate::pg::trigger::{NoSuchColumn, TriggerResult, value};
use crate::pg::triggers::Triggers;

/// The statement that fired a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerEvent {
    /// INSERT or COPY.
    Insert,
    Update,
    Delete,
    Truncate,
}

/// When a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    BeforeRow,
    /// After each row, or at the end of the transaction.
    AfterRow,
    BeforeStatement,
    Other,
}

/// Which version of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The row before an UPDATE or DELETE.
    Old,
    /// The row after an INSERT or UPDATE.
    New,
}

/// The value of a column that contains a day or a time.
#[derive(Clone, Copy, Debug)]
pub enum ColumnTime {
    Day(Date),
    Instant(TimestampWithTimeZone),
}

/// The call of a trigger function by its trigger.
pub struct Fired<'call> {
    pub(super) data: &'call pg_sys::TriggerData,
    trigger: &'call pg_sys::Trigger,
}

impl Called {
    /// Returns the data about the trigger, or `None` if the function was not called by a trigger.
    pub fn fired(&self) -> Option<Fired<'_>> {
        // SAFETY: PostgreSQL passes a valid call. If the function was called by a trigger, the context is the trigger
        // data, which is valid for the duration of the call.
        unsafe {
            if !pgrx::trigger_support::called_as_trigger(self.0) {
                return None;
            }
            let data = (*self.0).context.cast::<pg_sys::TriggerData>().as_ref()?;
            Some(Fired { data, trigger: data.tg_trigger.as_ref()? })
        }
    }
}

impl Fired<'_> {
    /// Returns the statement that fired the trigger.
    pub fn event(&self) -> TriggerEvent {
        match self.data.tg_event & pg_sys::TRIGGER_EVENT_OPMASK {
            pg_sys::TRIGGER_EVENT_INSERT => TriggerEvent::Insert,
            pg_sys::TRIGGER_EVENT_UPDATE => TriggerEvent::Update,
            pg_sys::TRIGGER_EVENT_DELETE => TriggerEvent::Delete,
            _ => TriggerEvent::Truncate,
        }
    }

    /// Returns when the trigger fires.
    pub fn timing(&self) -> Timing {
        let row = self.data.tg_event & pg_sys::TRIGGER_EVENT_ROW != 0;
        match (self.data.tg_event & pg_sys::TRIGGER_EVENT_TIMINGMASK, row) {
            (pg_sys::TRIGGER_EVENT_BEFORE, true) => Timing::BeforeRow,
            (pg_sys::TRIGGER_EVENT_AFTER, true) => Timing::AfterRow,
            (pg_sys::TRIGGER_EVENT_BEFORE, false) => Timing::BeforeStatement,
            _ => Timing::Other,
        }
    }

    /// Returns the arguments of the trigger, in the database's encoding.
    pub fn arguments(&self) -> Vec<&CStr> {
        let number = usize::try_from(self.trigger.tgnargs).unwrap_or(0);
        // SAFETY: `tgargs` has `tgnargs` elements. Each one is a C string that is valid for the duration of the call.
        (0..number).map(|n| unsafe { CStr::from_ptr(*self.trigger.tgargs.add(n)) }).collect()
    }

    /// Returns the table. If the row belongs to a partitioned table, returns the partition.
    pub fn table(&self) -> pg_sys::Oid {
        // SAFETY: the table is open during the call.
        unsafe { (*self.data.tg_relation).rd_id }
    }

    /// Returns the table that follows FROM in the definition of the trigger, or `None` if there is none.
    pub fn referenced(&self) -> Option<pg_sys::Oid> {
        (self.trigger.tgconstrrelid != pg_sys::InvalidOid).then_some(self.trigger.tgconstrrelid)
    }

    /// Returns the trigger's OID if the trigger is a clone of a partitioned table's trigger.
    pub fn clone(&self) -> Option<pg_sys::Oid> {
        self.trigger.tgisclone.then_some(self.trigger.tgoid)
    }

    /// Returns the name of the trigger, in the database's encoding.
    pub fn name(&self) -> &CStr {
        // SAFETY: the name is a C string that is valid for the duration of the call.
        unsafe { CStr::from_ptr(self.trigger.tgname) }
    }

    /// Returns all triggers on the table.
    pub fn triggers_of_table(&self) -> Triggers {
        // SAFETY: the table is open during the call.
        unsafe { Triggers::of(self.data.tg_relation) }
    }

    /// Returns the schema of the function that the trigger calls.
    pub fn schema(&self) -> pg_sys::Oid {
        // SAFETY: the call reads the catalog caches in a transaction.
        unsafe { pg_sys::get_func_namespace(self.trigger.tgfoid) }
    }

    /// Returns the address of the new row in the table. The trigger must fire after each inserted or updated row.
    pub fn place(&self) -> pg_sys::ItemPointerData {
        // SAFETY: such a trigger has a new row.
        unsafe { (*self.row(Version::New)).t_self }
    }

    /// Returns the address of the row before an UPDATE.
    pub fn former_place(&self) -> pg_sys::ItemPointerData {
        // SAFETY: a row-level trigger has a row.
        unsafe { (*self.row(Version::Old)).t_self }
    }

    /// Returns the value of a column of type `bigint`, or `None` if it is NULL.
    pub fn bigint(&self, version: Version, column: &CStr) -> Result<Option<i64>, NoSuchColumn> {
        // SAFETY: the row belongs to this call.
        let value = unsafe { value(self.row(version), self.data, column, &[pg_sys::INT8OID]) };
        value.map(|found| found.map(|(value, _)| value.value() as i64))
    }

    /// Returns the value of a column of type `text` or `varchar`, or `None` if it is NULL. The value is not copied,
    /// because it can be a gigabyte in size.
    pub fn text(&self, version: Version, column: &CStr) -> Result<Option<&[u8]>, NoSuchColumn> {
        // SAFETY: the row belongs to this call. A value of these types is a varlena of bytes, either in the row or in
        // the memory of the call.
        unsafe {
            let found = value(self.row(version), self.data, column, &[pg_sys::TEXTOID, pg_sys::VARCHAROID])?;
            Ok(found.and_then(|(value, _)| <&[u8]>::from_datum(value, false)))
        }
    }

    /// Returns the value of a column of type `date` or `timestamptz` in the new row, or `None` if it is NULL.
    pub fn moment(&self, column: &CStr) -> Result<Option<ColumnTime>, NoSuchColumn> {
        // SAFETY: the row belongs to this call, and the value has the type that was found.
        unsafe {
            let expected = [pg_sys::DATEOID, pg_sys::TIMESTAMPTZOID];
            let found = value(self.row(Version::New), self.data, column, &expected)?;
            Ok(found.and_then(|(value, kind)| match kind {
                pg_sys::DATEOID => Date::from_datum(value, false).map(ColumnTime::Day),
                _ => TimestampWithTimeZone::from_datum(value, false).map(ColumnTime::Instant),
            }))
        }
    }

    pub(super) fn row(&self, version: Version) -> pg_sys::HeapTuple {
        match (self.event(), version) {
            (TriggerEvent::Update, Version::New) => self.data.tg_newtuple,
            _ => self.data.tg_trigtuple,
        }
    }

    /// Returns the result that makes PostgreSQL continue with the unchanged row.
    pub fn unchanged(&self) -> TriggerResult {
        match self.timing() {
            Timing::BeforeRow => TriggerResult(self.row(Version::New)),
            _ => TriggerResult(std::ptr::null_mut()),
        }
    }
}
