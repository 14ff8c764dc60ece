//! Partitions, and through which table a role may write them.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::{IntoDatum, direct_function_call, pg_sys};

// The type has 64 bits from PostgreSQL 16 on.
const SELECT: pg_sys::AclMode = pg_sys::ACL_SELECT as pg_sys::AclMode;
const UPDATE: pg_sys::AclMode = pg_sys::ACL_UPDATE as pg_sys::AclMode;

/// Returns true if the current role may read a table and update one of its columns.
pub fn may_update(table: pg_sys::Oid, column: &CStr) -> bool {
    // SAFETY: the functions read the catalog caches in a transaction, and the name is a C string.
    unsafe {
        let role = pg_sys::GetUserId();
        let allowed = |right| pg_sys::pg_class_aclcheck(table, role, right) == pg_sys::AclResult::ACLCHECK_OK;
        let column = || {
            let number = pg_sys::get_attnum(table, column.as_ptr());
            pg_sys::pg_attribute_aclcheck(table, number, role, UPDATE) == pg_sys::AclResult::ACLCHECK_OK
        };
        allowed(SELECT) && (allowed(UPDATE) || column())
    }
}

/// Returns the topmost partitioned table of a partition, or `None` for a table that is no partition.
pub fn root(table: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: the functions read the catalog in a transaction, and the second one takes an OID.
    unsafe {
        if !pg_sys::get_rel_relispartition(table) {
            return None;
        }
        direct_function_call(pg_sys::pg_partition_root, &[table.into_datum()])
    }
}
