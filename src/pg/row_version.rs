//! The versions of the row that a trigger has received, and what has become of them. Only headers of rows are read, and no columns.
#![allow(unsafe_code)]

use pgrx::pg_sys;

use crate::pg::fired::{Fired, Version};

/// A transaction or subtransaction that writes, and the number of a statement in the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub transaction: pg_sys::TransactionId,
    pub statement: pg_sys::CommandId,
}

impl Fired<'_> {
    /// Returns true if no later statement of the transaction has changed or deleted the new version of the row. The
    /// trigger must fire after each row that is inserted or updated.
    pub fn is_current(&self) -> bool {
        let mut place = self.place();
        // SAFETY: the table is open during the call, and its access method has this function. The slot is made for the table, and is
        // dropped after use. The snapshot is a constant of the server: it sees what this transaction has written.
        unsafe {
            let table = self.data.tg_relation;
            let slot = pg_sys::table_slot_create(table, std::ptr::null_mut());
            let fetch = (*(*table).rd_tableam).tuple_fetch_row_version.expect("every access method fetches rows");
            let found = fetch(table, &raw mut place, &raw mut pg_sys::SnapshotSelfData, slot);
            pg_sys::ExecDropSingleTupleTableSlot(slot);
            found
        }
    }

    /// Returns when the row was moved to a different partition by an UPDATE, which PostgreSQL reports as a DELETE here and an INSERT there.
    /// Returns `None` for any other DELETE. The trigger must fire after each row that is deleted.
    pub fn moved(&self) -> Option<Written> {
        // SAFETY: for such a trigger, there is an old row, whose header is complete.
        unsafe {
            let header = (*self.row(Version::Old)).t_data;
            let next = (*header).t_ctid;
            // PostgreSQL stores this pair of numbers in place of an address.
            let is_moved = next.ip_posid == pg_sys::MovedPartitionsOffsetNumber as u16
                && (next.ip_blkid.bi_hi, next.ip_blkid.bi_lo) == (u16::MAX, u16::MAX);
            is_moved.then(|| Written {
                transaction: pg_sys::GetCurrentTransactionId(),
                statement: pg_sys::HeapTupleHeaderGetCmax(header),
            })
        }
    }

    /// Returns when the row was inserted. The trigger must fire after each row that is inserted.
    pub fn inserted(&self) -> Written {
        // SAFETY: for such a trigger, there is a new row, whose header is complete. This transaction has inserted it.
        unsafe {
            let header = (*self.row(Version::New)).t_data;
            Written {
                transaction: pg_sys::GetCurrentTransactionId(),
                statement: pg_sys::HeapTupleHeaderGetCmin(header),
            }
        }
    }
}
