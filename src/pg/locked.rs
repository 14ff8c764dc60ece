//! Locks a table and, without a query, reads its privileges and the arguments of a trigger on it.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::relation::{self, Name};
use crate::pg::triggers::Triggers;
use crate::pg::versions;

/// The mode in which a table is locked, and the duration of the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// While the arguments are read, in the lock mode of SELECT.
    Reading,
    /// Until the transaction ends, in the lock mode of SELECT. The name of the table cannot change during this time.
    /// The caller has checked the privileges.
    Naming,
    /// Until the transaction ends, in the lock mode of INSERT. The table's name and triggers cannot change during this
    /// time.
    Writing,
}

/// Returns the arguments of the first trigger that has arguments and calls a function with this name. Returns `None` if
/// there is no such trigger or if the relation is not an ordinary table. Views can have triggers, but their columns can
/// run code of their owner. On a standby, the table must not be locked for writing.
pub fn trigger_arguments(table: pg_sys::Oid, function: &CStr, lock: Lock) -> Option<Vec<Vec<u8>>> {
    let mode = if lock == Lock::Writing { pg_sys::RowExclusiveLock } else { pg_sys::AccessShareLock } as i32;
    // SAFETY: the table is open while its triggers are copied.
    let (is_table, all) = unsafe {
        let relation = pg_sys::try_relation_open(table, mode);
        if relation.is_null() {
            return None;
        }
        let is_table = (*(*relation).rd_rel).relkind as u8 == pg_sys::RELKIND_RELATION;
        let all = Triggers::of(relation);
        pg_sys::relation_close(relation, if lock == Lock::Reading { mode } else { pg_sys::NoLock as i32 });
        (is_table, all)
    };
    let defining = all.iter().find(|trigger| is_table && trigger.has_arguments() && trigger.calls(function));
    defining.map(|trigger| trigger.arguments())
}

/// Locks a table until the transaction ends, in the lock mode of INSERT. Returns its owner, or `None` if the table does
/// not exist.
pub fn owner(table: pg_sys::Oid) -> Option<pg_sys::Oid> {
    keep(table, pg_sys::RowExclusiveLock)?;
    relation::owner(table)
}

/// Locks a table or view until the transaction ends, in the lock mode of SELECT. Returns its name, which cannot change
/// during this time. Returns `None` if there is no such table or view.
pub fn name(table: pg_sys::Oid) -> Option<Name> {
    keep(table, pg_sys::AccessShareLock)?;
    relation::of_relation(table)
}

/// Locks a relation until the transaction ends. Returns `None` if the relation does not exist.
fn keep(relation: pg_sys::Oid, mode: u32) -> Option<()> {
    // SAFETY: if the relation exists, it is opened and closed again. The lock is kept.
    unsafe {
        let open = pg_sys::try_relation_open(relation, mode as i32);
        if open.is_null() {
            return None;
        }
        pg_sys::relation_close(open, pg_sys::NoLock as i32);
    }
    Some(())
}

/// Returns true if a role has the TRIGGER privilege on a table, or if the table does not exist.
pub fn may_trigger(table: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    privilege(table, role, pg_sys::ACL_TRIGGER) == pg_sys::AclResult::ACLCHECK_OK
}

/// Checks a role's privilege on a table. If the table does not exist, the result is `ACLCHECK_OK`.
fn privilege(table: pg_sys::Oid, role: pg_sys::Oid, right: u32) -> pg_sys::AclResult::Type {
    let mut missing = false;
    // SAFETY: the function reads the catalog caches in a transaction.
    let result = unsafe { pg_sys::pg_class_aclcheck_ext(table, role, versions::acl(right), &raw mut missing) };
    if missing { pg_sys::AclResult::ACLCHECK_OK } else { result }
}

/// Raises PostgreSQL's error unless the current user may select, insert and update rows of a table. Nothing is locked,
/// so a user without these privileges cannot lock the table. If the table does not exist, no error is raised.
pub fn check_writable(table: pg_sys::Oid) {
    // SAFETY: the call reads a variable of this process.
    let role = unsafe { pg_sys::GetUserId() };
    for right in [pg_sys::ACL_INSERT, pg_sys::ACL_UPDATE, pg_sys::ACL_SELECT] {
        let result = privilege(table, role, right);
        if result != pg_sys::AclResult::ACLCHECK_OK {
            relation::deny(table, result);
        }
    }
}
