//! A cursor that functions in its query cannot close, for example with CLOSE ALL.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::mem::ManuallyDrop;

use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use pgrx::spi::{Spi, SpiError, SpiHeapTupleData};

use crate::pg::relation::ANSWERED;

/// A cursor. It must be read to its end, because PostgreSQL does not commit while a cursor is pinned. After an error, the
/// end of the transaction or subtransaction closes it.
pub struct PinnedCursor {
    /// The name of the portal, or `None` after the last row.
    name: Option<String>,
}

impl PinnedCursor {
    /// Runs a query with the snapshot of the calling statement.
    pub fn open(query: &str, arguments: &[DatumWithOid]) -> PinnedCursor {
        let name = Spi::connect(|client| client.open_cursor(query, arguments).detach_into_name());
        // SAFETY: the portal was just created.
        unsafe { pg_sys::PinPortal(portal(&name)) };
        PinnedCursor { name: Some(name) }
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
