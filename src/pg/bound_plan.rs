//! Statements that are planned only once in each session, and whose table is identified by its OID.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::rc::Rc;

use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use pgrx::spi::{SpiError, SpiHeapTupleData};

use crate::faults;
use crate::pg::bound_name::{self, BoundName};
use crate::pg::plans::KeptPlans;
use crate::pg::relation::ANSWERED;

thread_local! {
    /// The plans, indexed by the text of the statement and the table.
    static PLANS: KeptPlans<(CString, pg_sys::Oid), BoundPlan> = KeptPlans::new();
}

/// Runs a statement that reads or writes one table, and reads the first row that it returns. [`BoundName::prepare`]
/// describes the statement. A SELECT also returns rows that were committed during the calling statement. If the name of
/// the table belongs to a different table, `name_changed` raises an error.
pub fn first<T>(
    table: pg_sys::Oid,
    statement: String,
    arguments: &[DatumWithOid<'_>],
    name_changed: fn(pg_sys::Oid) -> !,
    read: impl FnOnce(SpiHeapTupleData<'_>) -> Result<T, SpiError>,
) -> Option<T> {
    faults::named();
    let statement = CString::new(statement).expect("names contain no zero byte");
    let row = Spi::connect_mut(|_| {
        // SAFETY: `connect_mut` has connected to SPI. The plan exists while it runs, even if a trigger calls this function.
        // The rows exist until this process disconnects from SPI.
        unsafe {
            let plan = plan(statement, BoundName::new(table, arguments, name_changed));
            pg_sys::SPI_execute_plan_with_paramlist(plan.plan, bound_name::parameters(arguments), false, 0);
            let Some(rows) = pg_sys::SPI_tuptable.as_ref().filter(|rows| rows.numvals > 0) else { return Ok(None) };
            SpiHeapTupleData::new(rows.tupdesc, *rows.vals)?.map(read).transpose()
        }
    });
    row.expect(ANSWERED)
}

/// A plan that is kept until this value is dropped.
struct BoundPlan {
    plan: pg_sys::SPIPlanPtr,
    /// PostgreSQL reads this value whenever it analyzes the statement.
    _name: Rc<BoundName>,
}

impl Drop for BoundPlan {
    fn drop(&mut self) {
        // SAFETY: the plan was kept, and it does not run, because a caller that runs it has a reference to this value.
        unsafe { pg_sys::SPI_freeplan(self.plan) };
    }
}

/// Returns the plan of a statement for a table.
///
/// # Safety
///
/// This process is connected to SPI.
unsafe fn plan(statement: CString, name: BoundName) -> Rc<BoundPlan> {
    let key = (statement, name.table());
    if let Some(plan) = PLANS.with(|plans| plans.get(&key)) {
        return plan;
    }
    let name = Rc::new(name);
    // SAFETY: the caller guarantees that this process is connected to SPI. The name exists for as long as the plan.
    let plan = unsafe {
        let plan = name.prepare(&key.0);
        pg_sys::SPI_keepplan(plan);
        BoundPlan { plan, _name: name }
    };
    PLANS.with(|plans| plans.keep(key, plan))
}
