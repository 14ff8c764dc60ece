//! Labels of tables. They are stored as PostgreSQL security labels, which only the owner of a table can set, after a
//! check by this extension. A table keeps its label when its name or owner changes, and dumps contain the label.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::ptr;
use std::sync::OnceLock;

use pgrx::prelude::*;

use crate::pg::{c_string, relation};

/// The label provider, which is named in `SECURITY LABEL FOR`.
const PROVIDER: &CStr = c"snowflake_pg";

/// Raises an error if the current user may not set a label. The object's OID is passed only if the object is a table.
type Check = fn(Option<pg_sys::Oid>, &[u8]);

static CHECK: OnceLock<Check> = OnceLock::new();

/// Makes the statement `SECURITY LABEL FOR snowflake_pg` available. This function is called when the library is loaded.
pub fn provide(check: Check) {
    let _ = CHECK.set(check);
    // SAFETY: PostgreSQL copies the name and stores the pointer to the function. Its library is never unloaded.
    unsafe { pg_sys::register_label_provider(PROVIDER.as_ptr(), Some(check_label)) };
}

/// Checks the label in a statement. The owner of an object can always remove its label.
///
/// # Safety
///
/// PostgreSQL calls this function with a locked object, after it has checked that the current user owns the object.
#[pg_guard]
unsafe extern "C-unwind" fn check_label(object: *const pg_sys::ObjectAddress, label: *const c_char) {
    // SAFETY: PostgreSQL passes a valid object, and a label that is null or a C string.
    let (object, label) = unsafe { (&*object, c_string::bytes(label)) };
    let is_relation = object.classId == pg_sys::RelationRelationId && object.objectSubId == 0;
    if let (Some(check), Some(label)) = (CHECK.get(), label) {
        check(is_relation.then_some(object.objectId).filter(|oid| relation::is_table(*oid)), label);
    }
}

/// Returns true if a table has this label, which is in the database's encoding. The stored label is not copied, because
/// it can be a gigabyte in size.
pub fn has(table: pg_sys::Oid, label: &[u8]) -> bool {
    // SAFETY: the function reads a catalog in a transaction. It returns null or a C string that is valid for the
    // duration of this call.
    unsafe { c_string::bytes(pg_sys::GetSecurityLabel(&address(table), PROVIDER.as_ptr())) == Some(label) }
}

/// Sets the label of a table without checking it.
pub fn set(table: pg_sys::Oid, label: &[u8]) {
    let label = CString::new(label).expect("texts contain no zero byte");
    // SAFETY: the table exists and is locked, and both texts are C strings.
    unsafe { pg_sys::SetSecurityLabel(&address(table), PROVIDER.as_ptr(), label.as_ptr()) };
}

/// Returns a table other than `own` that has the given label. The current label is read, even if the transaction uses
/// an older snapshot.
pub fn holder(label: &[u8], own: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let mut found = None;
    // SAFETY: the catalog stays open during the scan, and each row is read before the next one is fetched. The values
    // have the types of the catalog's columns, which no statement can change, and none of these columns can be NULL.
    unsafe {
        let catalog = pg_sys::table_open(pg_sys::SecLabelRelationId, pg_sys::AccessShareLock as i32);
        let scan = pg_sys::systable_beginscan(catalog, pg_sys::InvalidOid, false, ptr::null_mut(), 0, ptr::null_mut());
        loop {
            let row = pg_sys::systable_getnext(scan);
            if row.is_null() || found.is_some() {
                break;
            }
            let mut null = false;
            let mut value = |column: u32| pg_sys::SPI_getbinval(row, (*catalog).rd_att, column as i32, &raw mut null);
            let oid = pg_sys::Oid::from_datum(value(pg_sys::Anum_pg_seclabel_objoid), false);
            let class = pg_sys::Oid::from_datum(value(pg_sys::Anum_pg_seclabel_classoid), false);
            let part = i32::from_datum(value(pg_sys::Anum_pg_seclabel_objsubid), false);
            let (provider, text) = (value(pg_sys::Anum_pg_seclabel_provider), value(pg_sys::Anum_pg_seclabel_label));
            let is_other = (class, part) == (Some(pg_sys::RelationRelationId), Some(0)) && oid != Some(own);
            let is = |value, text: &[u8]| <&[u8]>::from_datum(value, false) == Some(text);
            found = oid.filter(|_| is_other && is(provider, PROVIDER.to_bytes()) && is(text, label));
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, pg_sys::AccessShareLock as i32);
    }
    found
}

fn address(table: pg_sys::Oid) -> pg_sys::ObjectAddress {
    pg_sys::ObjectAddress { classId: pg_sys::RelationRelationId, objectId: table, objectSubId: 0 }
}
