//! Labels of tables. They are PostgreSQL's security labels: only the owner of a table can set one, after a check by this extension. A label
//! stays with a table that gets a different name or owner, and dumps contain it.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

use pgrx::prelude::*;

use crate::pg::relation;

/// The provider of the labels, as in `SECURITY LABEL FOR`.
const PROVIDER: &CStr = c"snowflake_pg";

/// Raises an error if the current user may not set a label of a table, or of an object of a different kind.
type Check = fn(Option<pg_sys::Oid>, &[u8]);

static CHECK: OnceLock<Check> = OnceLock::new();

/// Makes `SECURITY LABEL FOR snowflake_pg` a statement. This function is called when the library is loaded.
pub fn provide(check: Check) {
    let _ = CHECK.set(check);
    // SAFETY: PostgreSQL copies the name, and keeps the pointer to the function, whose library is never unloaded.
    unsafe { pg_sys::register_label_provider(PROVIDER.as_ptr(), Some(check_label)) };
}

/// Checks the label of a statement. The owner of an object can remove its label.
///
/// # Safety
///
/// PostgreSQL calls this function with an object that is locked, after it has checked that the current user owns the object.
#[pg_guard]
unsafe extern "C-unwind" fn check_label(object: *const pg_sys::ObjectAddress, label: *const c_char) {
    // SAFETY: PostgreSQL passes a valid object, and null or a C string.
    let (object, label) = unsafe { (&*object, (!label.is_null()).then(|| CStr::from_ptr(label))) };
    let is_relation = object.classId == pg_sys::RelationRelationId && object.objectSubId == 0;
    if let (Some(check), Some(label)) = (CHECK.get(), label) {
        check(is_relation.then_some(object.objectId).filter(|oid| relation::is_table(*oid)), label.to_bytes());
    }
}

/// Returns true if a table has this label, which is in the encoding of the database. The label of a table can be a gigabyte in size, so it
/// is not copied.
pub fn has(table: pg_sys::Oid, label: &[u8]) -> bool {
    // SAFETY: the function reads a catalog in a transaction. It returns null or a C string in the memory of this call.
    unsafe {
        let found = pg_sys::GetSecurityLabel(&address(table), PROVIDER.as_ptr());
        !found.is_null() && CStr::from_ptr(found).to_bytes() == label
    }
}

/// Sets the label of a table without a check.
pub fn set(table: pg_sys::Oid, label: &[u8]) {
    let label = CString::new(label).expect("texts contain no zero byte");
    // SAFETY: the table exists and is locked, and both texts are C strings.
    unsafe { pg_sys::SetSecurityLabel(&address(table), PROVIDER.as_ptr(), label.as_ptr()) };
}

/// Returns a table other than `own` that has a label. It is read as of now, even if the transaction has an older snapshot.
pub fn holder(label: &[u8], own: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let mut found = None;
    // SAFETY: the catalog stays open during the scan, and each row is read before the next one. The values have the types of the catalog,
    // which no statement can change, and none of these columns can be NULL.
    unsafe {
        let catalog = pg_sys::table_open(pg_sys::SecLabelRelationId, pg_sys::AccessShareLock as i32);
        let scan = pg_sys::systable_beginscan(
            catalog,
            pg_sys::InvalidOid,
            false,
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
        );
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
