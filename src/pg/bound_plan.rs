//! Statements that are planned only once in each session and write to one table, which is identified by its OID.
//!
//! A statement names its table, and PostgreSQL looks the name up again whenever it analyzes the statement. Locking the
//! table protects its name, but not the name of its schema. The owner of the schema could therefore replace the table by
//! a different one, whose triggers and expressions would run with the privileges of this session. For this reason, the
//! table is compared with the expected one during the analysis, before PostgreSQL plans or runs anything.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::rc::Rc;
use std::sync::OnceLock;

use pgrx::prelude::*;
use pgrx::{IntoDatum, PgBox};

use crate::faults::{self, Fault};
use crate::pg::text_value::TextValue;

/// The maximum number of plans that a session keeps. A plan needs some tens of kilobytes of memory.
const MAX_PLANS: usize = 64;

/// The types of the parameters of each statement.
const TYPES: [pg_sys::Oid; 2] = [pg_sys::TEXTOID, pg_sys::INT8OID];

/// Plans, indexed by the text of the statement and the table.
type Plans = HashMap<(CString, pg_sys::Oid), Rc<Plan>>;

thread_local! {
    /// The plans of this session. They are not freed at process exit, because PostgreSQL has already freed its own memory
    /// by then.
    static PLANS: ManuallyDrop<RefCell<Plans>> = ManuallyDrop::default();
}

/// Raises the error for a table whose name belongs to a different table.
static NAME_CHANGED: OnceLock<fn(pg_sys::Oid) -> !> = OnceLock::new();

/// Runs an INSERT into a table and returns the first value that it returns, which must be of type `bigint`. The statement
/// has two parameters, of types `text` and `bigint`, in its VALUES list. All names in the statement must be qualified. If
/// the name of the table belongs to a different table, `name_changed` raises an error. It is the same function at each
/// call.
pub fn insert(
    table: pg_sys::Oid,
    statement: String,
    text: TextValue,
    number: i64,
    name_changed: fn(pg_sys::Oid) -> !,
) -> Option<i64> {
    NAME_CHANGED.get_or_init(|| name_changed);
    let statement = CString::new(statement).expect("names contain no zero byte");
    Spi::connect_mut(|_| {
        // SAFETY: `connect_mut` has connected to SPI. The list has room for two parameters, whose values have the types
        // in TYPES. The plan exists while it runs, even if a trigger calls this function. The result, if any, has one
        // column of type bigint.
        unsafe {
            let plan = plan(table, statement);
            let parameters = pg_sys::makeParamList(TYPES.len() as i32);
            let values = [text.into_datum(), number.into_datum()];
            let all = (*parameters).params.as_mut_slice(TYPES.len());
            for ((parameter, value), ptype) in all.iter_mut().zip(values).zip(TYPES) {
                let value = value.expect("the value is not NULL");
                let pflags = pg_sys::PARAM_FLAG_CONST as u16;
                *parameter = pg_sys::ParamExternData { value, isnull: false, pflags, ptype };
            }
            pg_sys::SPI_execute_plan_with_paramlist(plan.0, parameters, false, 0);
            let rows = pg_sys::SPI_tuptable.as_ref().filter(|rows| rows.numvals > 0)?;
            let mut is_null = false;
            let value = pg_sys::SPI_getbinval(*rows.vals, rows.tupdesc, 1, &raw mut is_null);
            i64::from_datum(value, is_null)
        }
    })
}

/// A plan that is kept until this value is dropped.
struct Plan(pg_sys::SPIPlanPtr);

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: the plan was kept, and it does not run, because a caller that runs it has a reference to this value.
        unsafe { pg_sys::SPI_freeplan(self.0) };
    }
}

/// Returns the plan of a statement.
///
/// # Safety
///
/// This process is connected to SPI.
unsafe fn plan(table: pg_sys::Oid, statement: CString) -> Rc<Plan> {
    let key = (statement, table);
    if let Some(plan) = PLANS.with(|plans| plans.borrow().get(&key).cloned()) {
        return plan;
    }
    // SAFETY: the caller guarantees that this process is connected to SPI, and the statement is a C string. The argument
    // of `set_up` is an OID in the form of a pointer.
    let plan = unsafe {
        let plan = pg_sys::SPI_prepare_params(key.0.as_ptr(), Some(set_up), table.to_u32() as usize as *mut c_void, 0);
        pg_sys::SPI_keepplan(plan);
        Rc::new(Plan(plan))
    };
    PLANS.with(|plans| {
        let mut plans = plans.borrow_mut();
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        plans.insert(key, plan.clone());
    });
    plan
}

/// Makes the analysis of a statement call [`parameter`].
///
/// # Safety
///
/// PostgreSQL calls this function before it analyzes the statement, with the argument that was passed when the statement
/// was prepared.
#[pg_guard]
unsafe extern "C-unwind" fn set_up(parse: *mut pg_sys::ParseState, table: *mut c_void) {
    // SAFETY: PostgreSQL passes a valid structure.
    unsafe {
        (*parse).p_paramref_hook = Some(parameter);
        (*parse).p_ref_hook_state = table;
    }
}

/// Returns the node of a parameter. Raises an error if the statement does not write to the expected table, which
/// PostgreSQL has opened and locked before it analyzes the VALUES list.
///
/// # Safety
///
/// PostgreSQL calls this function for a parameter of a statement that it analyzes after [`set_up`].
#[pg_guard]
unsafe extern "C-unwind" fn parameter(
    parse: *mut pg_sys::ParseState,
    reference: *mut pg_sys::ParamRef,
) -> *mut pg_sys::Node {
    // SAFETY: PostgreSQL passes valid structures, and the argument of `set_up`. The relation is null or open. The
    // statement has only parameters with a type in TYPES.
    unsafe {
        let table = pg_sys::Oid::from((*parse).p_ref_hook_state as usize as u32);
        let found = (*parse).p_target_relation.as_ref().map(|relation| relation.rd_id);
        if found != Some(table) && !faults::on(Fault::CounterByName) {
            (NAME_CHANGED.get().expect("the caller of `insert` has passed it"))(table);
        }
        let number = (*reference).number;
        let Some(&kind) = TYPES.get(number as usize - 1) else { return ptr::null_mut() };
        let mut parameter = PgBox::<pg_sys::Param>::alloc_node(pg_sys::NodeTag::T_Param);
        parameter.paramkind = pg_sys::ParamKind::PARAM_EXTERN;
        parameter.paramid = number;
        parameter.paramtype = kind;
        parameter.paramtypmod = -1;
        parameter.paramcollid = pg_sys::get_typcollation(kind);
        parameter.location = (*reference).location;
        parameter.into_pg().cast()
    }
}
