//! A cursor that reads one table, which is identified by its OID, and that functions in its query cannot close, for
//! example with CLOSE ALL.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::mem::ManuallyDrop;
use std::ptr;

use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use pgrx::spi::{Spi, SpiError, SpiHeapTupleData};

use crate::faults;
use crate::pg::bound_name::{self, BoundName};
use crate::pg::relation::ANSWERED;

/// A cursor. It must be read to its end, because PostgreSQL does not commit while a cursor is pinned. After an error, the
/// end of the transaction or subtransaction closes it.
pub struct PinnedCursor {
    /// The name of the portal, or `None` after the last row.
    name: Option<String>,
}

impl PinnedCursor {
    /// Runs a query on a table with the snapshot of the calling statement. [`BoundName::prepare`] describes the query. If
    /// the name of the table belongs to a different table, `name_changed` raises an error.
    pub fn open(
        table: pg_sys::Oid,
        query: &str,
        arguments: &[DatumWithOid<'_>],
        name_changed: fn(pg_sys::Oid) -> !,
    ) -> PinnedCursor {
        faults::named();
        let query = CString::new(query).expect("names contain no zero byte");
        let bound = BoundName::new(table, arguments, name_changed);
        let name = Spi::connect(|_| {
            // SAFETY: `connect` has connected to SPI. The plan, which is not kept, exists only until this process
            // disconnects. The portal has a copy of what it needs, and its name is a C string.
            unsafe {
                let plan = bound.prepare(&query);
                let parameters = bound_name::parameters(arguments);
                let portal = pg_sys::SPI_cursor_open_with_paramlist(ptr::null(), plan, parameters, true);
                pg_sys::PinPortal(portal);
                CStr::from_ptr((*portal).name).to_string_lossy().into_owned()
            }
        });
        PinnedCursor { name: Some(name) }
    }

    /// Reads all rows.
    pub fn all<T>(mut self, read: impl Fn(SpiHeapTupleData<'_>) -> Result<T, SpiError>) -> Vec<T> {
        let rows = self.fetch(i64::MAX, &read);
        // This closes the cursor, unless there were no rows.
        self.fetch(1, &read);
        rows
    }

    /// Reads at most `count` rows. Returns no rows after the last one. PostgreSQL's copies of the rows are freed when this
    /// function returns.
    pub fn fetch<T>(&mut self, count: i64, read: impl Fn(SpiHeapTupleData<'_>) -> Result<T, SpiError>) -> Vec<T> {
        let Some(name) = &self.name else { return Vec::new() };
        let rows = Spi::connect(|client| {
            // The destructor would close the portal during an error, before PostgreSQL ends the parallel workers that a
            // function in the query has started. They use memory of the portal.
            let mut cursor = ManuallyDrop::new(client.find_cursor(name)?);
            cursor.fetch(count)?.map(read).collect::<Result<Vec<T>, SpiError>>()
        });
        let rows = rows.expect(ANSWERED);
        if rows.is_empty() {
            // SAFETY: a pinned portal exists until it is unpinned.
            unsafe {
                let portal = portal(name);
                pg_sys::UnpinPortal(portal);
                pg_sys::SPI_cursor_close(portal);
            }
            self.name = None;
        }
        rows
    }
}

/// Returns the portal with this name, which must exist.
fn portal(name: &str) -> pg_sys::Portal {
    let name = CString::new(name).expect("PostgreSQL's names contain no zero byte");
    // SAFETY: the function searches a table of this process.
    unsafe { pg_sys::GetPortalByName(name.as_ptr()) }
}
