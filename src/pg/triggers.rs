//! Copies of the triggers on a table.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::c_string;

/// The maximum number of arguments that are read, and the maximum number of bytes of each. The definitions that this
/// extension writes never exceed these limits, but a manually created trigger can have any number of arguments of any
/// length.
const MAX_ARGUMENTS: usize = 10;
const MAX_BYTES: usize = 1_000;

/// Copies of the triggers on a table. They are needed because reading a catalog can reveal that the table has changed,
/// and PostgreSQL then frees the open table's triggers. The copies are in PostgreSQL's memory, because a table can have
/// any number of triggers.
pub struct Triggers(*mut pg_sys::TriggerDesc);

/// The events for which a trigger fires, and when it fires, as in `pg_trigger.tgtype`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fires {
    /// After each inserted, updated or deleted row.
    AfterRow,
    /// Before a TRUNCATE.
    BeforeTruncate,
}

/// A trigger on a table.
pub struct Trigger<'copy>(&'copy pg_sys::Trigger);

impl Triggers {
    /// Copies the triggers on an open table.
    ///
    /// # Safety
    ///
    /// The table must be open.
    pub(super) unsafe fn of(table: pg_sys::Relation) -> Triggers {
        // SAFETY: the table is open, and the description of its triggers is null or valid.
        Triggers(unsafe { pg_sys::CopyTriggerDesc((*table).trigdesc) })
    }

    /// Returns an iterator over the triggers.
    pub fn iter(&self) -> impl Iterator<Item = Trigger<'_>> {
        // SAFETY: the copy is null or a description of `numtriggers` triggers, and is valid as long as this value.
        let all = unsafe {
            match self.0.as_ref() {
                Some(copy) => std::slice::from_raw_parts(copy.triggers, copy.numtriggers as usize),
                None => &[],
            }
        };
        all.iter().map(Trigger)
    }
}

impl Drop for Triggers {
    fn drop(&mut self) {
        // After an error, PostgreSQL frees the memory of the call.
        if !std::thread::panicking() {
            // SAFETY: the function accepts null, and nothing refers to the copy afterwards.
            unsafe { pg_sys::FreeTriggerDesc(self.0) };
        }
    }
}

impl Trigger<'_> {
    /// Returns the name, in the database's encoding.
    pub fn name(&self) -> &[u8] {
        // SAFETY: the name is a C string.
        unsafe { CStr::from_ptr(self.0.tgname) }.to_bytes()
    }

    /// Returns the arguments, in the database's encoding. Long arguments are truncated.
    pub fn arguments(&self) -> Vec<Vec<u8>> {
        let number = usize::try_from(self.0.tgnargs).unwrap_or(0).min(MAX_ARGUMENTS);
        let read = |n| {
            // SAFETY: `tgargs` has `tgnargs` elements, and each one is a C string.
            let text = unsafe { CStr::from_ptr(*self.0.tgargs.add(n)) }.to_bytes();
            text[..text.len().min(MAX_BYTES)].to_vec()
        };
        (0..number).map(read).collect()
    }

    pub fn has_arguments(&self) -> bool {
        self.0.tgnargs > 0
    }

    /// Returns the table that follows FROM in the definition of the trigger, or `None` if there is none.
    pub fn referenced(&self) -> Option<pg_sys::Oid> {
        (self.0.tgconstrrelid != pg_sys::InvalidOid).then_some(self.0.tgconstrrelid)
    }

    /// Returns true if the trigger calls a function with this name.
    pub fn calls(&self, function: &CStr) -> bool {
        // SAFETY: the call reads the catalog caches in a transaction. The name is null or a C string that is valid for
        // the duration of this call.
        unsafe { c_string::bytes(pg_sys::get_func_name(self.0.tgfoid)) == Some(function.to_bytes()) }
    }

    /// Returns true if the trigger calls the function with this name in this schema. A schema has at most one trigger
    /// function with a given name, because trigger functions take no arguments.
    pub fn calls_in(&self, schema: pg_sys::Oid, function: &CStr) -> bool {
        // SAFETY: the call reads the catalog caches in a transaction.
        self.calls(function) && unsafe { pg_sys::get_func_namespace(self.0.tgfoid) } == schema
    }

    /// Returns true if the trigger fires for exactly these events, regardless of the contents of the rows. A role with
    /// the TRIGGER privilege can replace a trigger, and the new trigger's condition is code from that role.
    pub fn fires_always(&self, when: Fires) -> bool {
        let kind = match when {
            Fires::AfterRow => {
                pg_sys::TRIGGER_TYPE_ROW
                    | pg_sys::TRIGGER_TYPE_INSERT
                    | pg_sys::TRIGGER_TYPE_UPDATE
                    | pg_sys::TRIGGER_TYPE_DELETE
            }
            Fires::BeforeTruncate => pg_sys::TRIGGER_TYPE_BEFORE | pg_sys::TRIGGER_TYPE_TRUNCATE,
        };
        let all = i32::from(self.0.tgtype) == kind as i32 && self.0.tgnattr == 0;
        all && self.0.tgqual.is_null() && self.0.tgoldtable.is_null() && self.0.tgnewtable.is_null()
    }

    /// Returns true if the trigger belongs to a foreign key that refers to this table.
    pub fn is_referenced_key(&self) -> bool {
        // SAFETY: the call compares the OID of the function with constants.
        self.0.tgisinternal && unsafe { pg_sys::RI_FKey_trigger_type(self.0.tgfoid) } == pg_sys::RI_TRIGGER_PK as i32
    }
}
