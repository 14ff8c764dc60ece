//! Partitions, and the tables through which a role may write to them.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::text_value::TextValue;
use crate::pg::{plans, versions};

const SELECT: pg_sys::AclMode = versions::acl(pg_sys::ACL_SELECT);
const UPDATE: pg_sys::AclMode = versions::acl(pg_sys::ACL_UPDATE);

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

/// Returns the nearest partitioned table above a partition through which the current role may update a column. If there
/// is none, returns the topmost partitioned table. Returns `None` if the table is not a partition.
pub fn through(table: pg_sys::Oid, column: &CStr) -> Option<pg_sys::Oid> {
    let query = "SELECT above.relid
                 FROM pg_catalog.pg_partition_ancestors($1::pg_catalog.regclass) WITH ORDINALITY AS p (relation, place),
                     LATERAL (SELECT p.relation::pg_catalog.oid, pg_catalog.has_table_privilege(p.relation, 'SELECT')
                                  AND pg_catalog.has_column_privilege(p.relation, $2, 'UPDATE')) AS above (relid, allowed)
                 WHERE above.relid OPERATOR(pg_catalog.<>) $1
                 ORDER BY above.allowed DESC, CASE WHEN above.allowed THEN p.place ELSE OPERATOR(pg_catalog.-) p.place END
                 LIMIT 1";
    let column = TextValue(column.to_bytes().to_vec());
    plans::first(query, &[table.into(), column.into()], |row| row.get::<pg_sys::Oid>(1)).flatten()
}
