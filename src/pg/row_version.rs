//! The versions of the row for which a trigger was fired, and whether later statements have changed them. Only row
//! headers are read, not columns.
#![allow(unsafe_code)]

use pgrx::pg_sys;

use crate::pg::fired::{Fired, Version};

/// A transaction or subtransaction that has written a row, and the number of the command that wrote the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub transaction: pg_sys::TransactionId,
    pub statement: pg_sys::CommandId,
}

impl Fired<'_> {
    /// Returns true if no later statement of the transaction has changed or deleted the new version of the row. The
    /// trigger must fire after each inserted or updated row.
    pub fn is_current(&self) -> bool {
        let mut place = self.place();
        // SAFETY: the table is open during the call, and its access method provides this function. The slot is created
        // for the table and is dropped after use. The snapshot is a constant of the server and sees the changes that
        // this transaction has made.
        unsafe {
            let table = self.data.tg_relation;
            let slot = pg_sys::table_slot_create(table, std::ptr::null_mut());
            let fetch = (*(*table).rd_tableam).tuple_fetch_row_version.expect("every access method fetches rows");
            let found = fetch(table, &raw mut place, &raw mut pg_sys::SnapshotSelfData, slot);
            pg_sys::ExecDropSingleTupleTableSlot(slot);
            found
        }
    }

    /// Returns when an UPDATE moved the row to a different partition. PostgreSQL reports such a move as a DELETE from
    /// one partition and an INSERT into the other. Returns `None` for any other DELETE. The trigger must fire after
    /// each deleted row.
    pub fn moved(&self) -> Option<Written> {
        // SAFETY: such a trigger has an old row, whose header is complete.
        unsafe {
            let header = (*self.row(Version::Old)).t_data;
            let next = (*header).t_ctid;
            // PostgreSQL stores this pair of numbers instead of an address.
            let is_moved = next.ip_posid == pg_sys::MovedPartitionsOffsetNumber as u16
                && (next.ip_blkid.bi_hi, next.ip_blkid.bi_lo) == (u16::MAX, u16::MAX);
            is_moved.then(|| Written {
                transaction: pg_sys::GetCurrentTransactionId(),
                statement: pg_sys::HeapTupleHeaderGetCmax(header),
            })
        }
    }

    /// Returns when the row was inserted. The trigger must fire after each inserted row.
    pub fn inserted(&self) -> Written {
        // SAFETY: such a trigger has a new row, whose header is complete. This transaction inserted it.
        unsafe {
            let header = (*self.row(Version::New)).t_data;
            Written {
                transaction: pg_sys::GetCurrentTransactionId(),
                statement: pg_sys::HeapTupleHeaderGetCmin(header),
            }
        }
    }
}
