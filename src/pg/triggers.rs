//! The triggers of a table, as copies.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::pg_sys;

/// How many bytes of an argument are read. No argument of a definition is longer, and a trigger that was made by hand can have arguments of
/// any length.
const MAX_ARGUMENT: usize = 1_000;

/// A trigger of a table.
pub struct Trigger {
    /// The name, in the encoding of the database.
    pub name: Vec<u8>,
    function: pg_sys::Oid,
    /// The arguments, in the encoding of the database. Each one is truncated if it is long.
    pub arguments: Vec<Vec<u8>>,
    /// The table that the trigger names after FROM, or the invalid OID.
    pub referenced: pg_sys::Oid,
    is_internal: bool,
}

/// Returns the triggers of an open table. They are copies: when PostgreSQL reads a catalog, it can learn of changes of the table, and free
/// the triggers of an open table.
///
/// # Safety
///
/// The table must be open.
pub(super) unsafe fn triggers(table: pg_sys::Relation) -> Vec<Trigger> {
    // SAFETY: the table is open, and nothing below reads a catalog. Names and arguments are C strings.
    unsafe {
        let Some(all) = (*table).trigdesc.as_ref() else { return Vec::new() };
        let read = |text: *mut std::ffi::c_char| {
            let text = CStr::from_ptr(text).to_bytes();
            text[..text.len().min(MAX_ARGUMENT)].to_vec()
        };
        let copy = |trigger: &pg_sys::Trigger| {
            let arguments = match usize::try_from(trigger.tgnargs) {
                Ok(number @ 1..) => std::slice::from_raw_parts(trigger.tgargs, number),
                _ => &[],
            };
            Trigger {
                name: CStr::from_ptr(trigger.tgname).to_bytes().to_vec(),
                function: trigger.tgfoid,
                arguments: arguments.iter().map(|text| read(*text)).collect(),
                referenced: trigger.tgconstrrelid,
                is_internal: trigger.tgisinternal,
            }
        };
        std::slice::from_raw_parts(all.triggers, all.numtriggers as usize).iter().map(copy).collect()
    }
}

impl Trigger {
    /// Returns true if the trigger calls a function of this name.
    pub fn calls(&self, function: &CStr) -> bool {
        // SAFETY: the call reads the catalog caches in a transaction. The name is null or a C string in the memory of this call.
        unsafe {
            let name = pg_sys::get_func_name(self.function);
            !name.is_null() && CStr::from_ptr(name) == function
        }
    }

    /// Returns true if the trigger calls the function of this name in this schema. A schema has only one trigger function of a name,
    /// because such functions take no arguments.
    pub fn calls_in(&self, schema: pg_sys::Oid, function: &CStr) -> bool {
        // SAFETY: the call reads the catalog caches in a transaction.
        self.calls(function) && unsafe { pg_sys::get_func_namespace(self.function) } == schema
    }

    /// Returns true for a trigger of a foreign key that refers to this table.
    pub fn is_referenced_key(&self) -> bool {
        // SAFETY: the call compares the number of the function with constants.
        self.is_internal && unsafe { pg_sys::RI_FKey_trigger_type(self.function) } == pg_sys::RI_TRIGGER_PK as i32
    }
}
