//! Statements that are planned only once in each session.
//!
//! A plan remains usable after ALTER TABLE, but not with the old types: PostgreSQL plans the statement again, and
//! before a value of a row is read, its type is compared with the type in the row's description
//! ([`SpiHeapTupleData::get`]). The parameters of a statement have the types of its first call. Each statement is
//! called from only one place in the source code, and always with the same types.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use pgrx::spi::{OwnedPreparedStatement, SpiError, SpiHeapTupleData, SpiTupleTable};

use crate::pg::relation::ANSWERED;

/// The maximum number of plans that a session keeps. A plan needs some tens of kilobytes of memory.
const MAX_PLANS: usize = 64;

thread_local! {
    /// The plans, indexed by the text of the statement.
    static PLANS: KeptPlans<String, OwnedPreparedStatement> = KeptPlans::new();
}

/// The plans that a session keeps, indexed by what identifies a statement. They are not freed at process exit, because
/// PostgreSQL has already freed its own memory by then.
pub struct KeptPlans<K, P>(ManuallyDrop<RefCell<HashMap<K, Rc<P>>>>);

impl<K: Eq + Hash, P> KeptPlans<K, P> {
    pub fn new() -> KeptPlans<K, P> {
        KeptPlans(ManuallyDrop::default())
    }

    /// Returns the plan of a statement.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<Rc<P>>
    where
        K: Borrow<Q>,
    {
        RefCell::borrow(&self.0).get(key).cloned()
    }

    /// Keeps a plan, and drops all others if there are too many. A plan that is running is in use by its caller, so it is
    /// dropped later.
    pub fn keep(&self, key: K, plan: P) -> Rc<P> {
        let mut plans = self.0.borrow_mut();
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        let plan = Rc::new(plan);
        plans.insert(key, plan.clone());
        plan
    }
}

/// Runs a statement that can write, and reads the first row that it returns. All names in the statement must be
/// qualified, because the same plan is used with any search path. PostgreSQL plans the statement again if an object
/// that it refers to has changed, or if policies apply and the role has changed.
pub fn first<T>(
    statement: &str,
    arguments: &[DatumWithOid<'_>],
    read: impl FnOnce(SpiHeapTupleData<'_>) -> Result<T, SpiError>,
) -> Option<T> {
    let row = Spi::connect_mut(|client| {
        let plan = match PLANS.with(|plans| plans.get(statement)) {
            Some(plan) => plan,
            None => {
                let types: Vec<PgOid> = arguments.iter().map(|argument| PgOid::from(argument.oid())).collect();
                let plan = client.prepare_mut(statement, &types)?.keep();
                PLANS.with(|plans| plans.keep(statement.into(), plan))
            }
        };
        let mut rows: SpiTupleTable = client.update(&*plan, None, arguments)?;
        rows.next().map(read).transpose()
    });
    row.expect(ANSWERED)
}
