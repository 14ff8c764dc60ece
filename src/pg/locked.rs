//! The arguments of a trigger of a table, which a function reads without a query.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::pg_sys;

/// How many bytes of an argument are read. No argument of a definition is longer, and a trigger that was made by hand can have arguments of
/// any length.
const MAX_ARGUMENT: usize = 1_000;

/// How long the table stays locked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// While the arguments are read, in the mode of SELECT.
    Reading,
    /// Until the transaction ends, in the mode of INSERT. The table then keeps its name and its triggers.
    Writing,
}

/// Returns the arguments of the first trigger with arguments that calls a function of this name, or `None` if the table has none.
/// The table must not be on a standby if it is locked for writing.
pub fn trigger_arguments(table: pg_sys::Oid, function: &CStr, lock: Lock) -> Option<Vec<Vec<u8>>> {
    let mode = if lock == Lock::Writing { pg_sys::RowExclusiveLock } else { pg_sys::AccessShareLock } as i32;
    let mut candidates = Vec::new();
    // SAFETY: the table is open while its triggers are copied, and nothing in between reads a catalog. When PostgreSQL reads a catalog, it
    // can learn of changes of the table, and free the triggers of an open table. Each argument is a C string.
    unsafe {
        let relation = pg_sys::try_relation_open(table, mode);
        let open = relation.as_ref()?;
        let triggers = match open.trigdesc.as_ref() {
            Some(triggers) => std::slice::from_raw_parts(triggers.triggers, triggers.numtriggers as usize),
            None => &[],
        };
        for trigger in triggers.iter().filter(|trigger| trigger.tgnargs > 0) {
            let arguments = std::slice::from_raw_parts(trigger.tgargs, trigger.tgnargs as usize);
            let read = |text: &*mut std::ffi::c_char| {
                let text = CStr::from_ptr(*text).to_bytes();
                text[..text.len().min(MAX_ARGUMENT)].to_vec()
            };
            candidates.push((trigger.tgfoid, arguments.iter().map(read).collect::<Vec<_>>()));
        }
        pg_sys::relation_close(relation, if lock == Lock::Writing { pg_sys::NoLock as i32 } else { mode });
    }
    let calls = |called: pg_sys::Oid| {
        // SAFETY: the call reads the catalog caches in a transaction. The name is null or a C string in the memory of this call.
        unsafe {
            let name = pg_sys::get_func_name(called);
            !name.is_null() && CStr::from_ptr(name) == function
        }
    };
    candidates.into_iter().find(|(called, _)| calls(*called)).map(|(_, arguments)| arguments)
}

/// Raises PostgreSQL's error unless the current user may select, insert and update rows of a table. Nothing is locked, so a user
/// without these rights cannot lock the table either. A table that does not exist is no error.
pub fn check_writable(table: pg_sys::Oid) {
    // The type has 64 bits from PostgreSQL 16 on.
    const RIGHTS: [pg_sys::AclMode; 3] = [
        pg_sys::ACL_INSERT as pg_sys::AclMode,
        pg_sys::ACL_UPDATE as pg_sys::AclMode,
        pg_sys::ACL_SELECT as pg_sys::AclMode,
    ];
    for right in RIGHTS {
        let mut missing = false;
        // SAFETY: the functions read the catalog caches in a transaction. The name of a relation that exists is a C string.
        unsafe {
            let result = pg_sys::pg_class_aclcheck_ext(table, pg_sys::GetUserId(), right, &raw mut missing);
            if result != pg_sys::AclResult::ACLCHECK_OK && !missing {
                let kind = pg_sys::get_relkind_objtype(pg_sys::get_rel_relkind(table));
                pg_sys::aclcheck_error(result, kind, pg_sys::get_rel_name(table));
            }
        }
    }
}
