//! Statements that are planned once in each session.
//!
//! A plan survives ALTER TABLE, but not with the old types: PostgreSQL plans the statement again, and each value of a row is compared with
//! the type that this row's description names before it is read ([`SpiHeapTupleData::get`]). The parameters of a statement have the
//! types of its first call. Only one place in the sources calls each statement, always with the same types.

use std::cell::RefCell;
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use pgrx::spi::{OwnedPreparedStatement, SpiError, SpiHeapTupleData, SpiTupleTable};

use crate::pg::relation::ANSWERED;

/// How many plans a session keeps. A plan takes some tens of kilobytes.
const MAX_PLANS: usize = 64;

thread_local! {
    /// The plans by the text of the statement. They are not freed at the end of the process, when PostgreSQL has already freed its
    /// own memory.
    static PLANS: ManuallyDrop<RefCell<HashMap<String, Rc<OwnedPreparedStatement>>>> = ManuallyDrop::default();
}

/// Runs a statement that can write, and reads the first row that it returns. The statement must qualify all names, because its plan is
/// the same for each search path. PostgreSQL plans the statement again if an object that it names has changed, or if policies apply and
/// the role has changed.
pub fn first<T>(
    statement: &str,
    arguments: &[DatumWithOid<'_>],
    read: impl FnOnce(SpiHeapTupleData<'_>) -> Result<T, SpiError>,
) -> Option<T> {
    let row = Spi::connect_mut(|client| {
        let kept = PLANS.with(|plans| plans.borrow().get(statement).cloned());
        let plan = match kept {
            Some(plan) => plan,
            None => {
                let types: Vec<PgOid> = arguments.iter().map(|argument| PgOid::from(argument.oid())).collect();
                let plan = Rc::new(client.prepare_mut(statement, &types)?.keep());
                PLANS.with(|plans| keep(&mut plans.borrow_mut(), statement.into(), plan.clone()));
                plan
            }
        };
        let mut rows: SpiTupleTable = client.update(&*plan, None, arguments)?;
        rows.next().map(read).transpose()
    });
    row.expect(ANSWERED)
}

fn keep(plans: &mut HashMap<String, Rc<OwnedPreparedStatement>>, statement: String, plan: Rc<OwnedPreparedStatement>) {
    if plans.len() >= MAX_PLANS {
        plans.clear();
    }
    plans.insert(statement, plan);
}
