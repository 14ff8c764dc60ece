//! Statements that are planned only once in each session and write to one table, which is identified by its OID.
//!
//! A statement names its table, and PostgreSQL looks the name up again whenever it analyzes the statement. Locking the
//! table protects its name, but not the name of its schema. The owner of the schema could therefore replace the table by
//! a different one, whose triggers and expressions would run with the privileges of this session. For this reason, the
//! table is compared with the expected one during the analysis, before PostgreSQL plans or runs anything.
#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::ptr;
use std::rc::Rc;

use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use pgrx::{FromDatum, PgBox};

use crate::faults::{self, Fault};
use crate::pg::plans::KeptPlans;

thread_local! {
    /// The plans, indexed by the text of the statement and the table.
    static PLANS: KeptPlans<(CString, pg_sys::Oid), BoundPlan> = KeptPlans::new();
}

/// What the analysis of a statement needs.
struct Target {
    table: pg_sys::Oid,
    /// The types of the parameters.
    types: Vec<pg_sys::Oid>,
    /// Raises the error for a table whose name belongs to a different table.
    name_changed: fn(pg_sys::Oid) -> !,
}

/// Runs an INSERT into a table or an UPDATE of a table, and returns the value in the first row that it returns, which
/// must have one column of this type. The statement has at least one parameter. All names in it must be qualified. If
/// the name of the table belongs to a different table, `name_changed` raises an error.
pub fn first<T: FromDatum>(
    table: pg_sys::Oid,
    statement: String,
    arguments: &[DatumWithOid<'_>],
    name_changed: fn(pg_sys::Oid) -> !,
) -> Option<T> {
    let statement = CString::new(statement).expect("names contain no zero byte");
    let types = arguments.iter().map(DatumWithOid::oid).collect();
    Spi::connect_mut(|_| {
        // SAFETY: `connect_mut` has connected to SPI. The list has room for the arguments. The plan exists while it runs,
        // even if a trigger calls this function. The result, if any, has one column of type T.
        unsafe {
            let plan = plan(statement, Target { table, types, name_changed });
            let parameters = pg_sys::makeParamList(arguments.len() as i32);
            let all = (*parameters).params.as_mut_slice(arguments.len());
            for (parameter, argument) in all.iter_mut().zip(arguments) {
                let value = argument.datum().expect("the value is not NULL").sans_lifetime();
                let pflags = pg_sys::PARAM_FLAG_CONST as u16;
                *parameter = pg_sys::ParamExternData { value, isnull: false, pflags, ptype: argument.oid() };
            }
            pg_sys::SPI_execute_plan_with_paramlist(plan.plan, parameters, false, 0);
            let rows = pg_sys::SPI_tuptable.as_ref().filter(|rows| rows.numvals > 0)?;
            let mut is_null = false;
            let value = pg_sys::SPI_getbinval(*rows.vals, rows.tupdesc, 1, &raw mut is_null);
            T::from_datum(value, is_null)
        }
    })
}

/// A plan that is kept until this value is dropped.
struct BoundPlan {
    plan: pg_sys::SPIPlanPtr,
    /// PostgreSQL passes this value to [`set_up`] whenever it analyzes the statement.
    _target: Rc<Target>,
}

impl Drop for BoundPlan {
    fn drop(&mut self) {
        // SAFETY: the plan was kept, and it does not run, because a caller that runs it has a reference to this value.
        unsafe { pg_sys::SPI_freeplan(self.plan) };
    }
}

/// Returns the plan of a statement.
///
/// # Safety
///
/// This process is connected to SPI.
unsafe fn plan(statement: CString, target: Target) -> Rc<BoundPlan> {
    let key = (statement, target.table);
    if let Some(plan) = PLANS.with(|plans| plans.get(&key)) {
        return plan;
    }
    let target = Rc::new(target);
    // SAFETY: the caller guarantees that this process is connected to SPI, and the statement is a C string. The target
    // exists for as long as the plan.
    let plan = unsafe {
        let plan = pg_sys::SPI_prepare_params(key.0.as_ptr(), Some(set_up), Rc::as_ptr(&target).cast_mut().cast(), 0);
        pg_sys::SPI_keepplan(plan);
        BoundPlan { plan, _target: target }
    };
    PLANS.with(|plans| plans.keep(key, plan))
}

/// Makes the analysis of a statement call [`parameter`].
///
/// # Safety
///
/// PostgreSQL calls this function before it analyzes the statement, with the argument that was passed when the statement
/// was prepared.
#[pg_guard]
unsafe extern "C-unwind" fn set_up(parse: *mut pg_sys::ParseState, target: *mut c_void) {
    // SAFETY: PostgreSQL passes a valid structure.
    unsafe {
        (*parse).p_paramref_hook = Some(parameter);
        (*parse).p_ref_hook_state = target;
    }
}

/// Returns the node of a parameter. Raises an error if the statement does not write to the expected table, which
/// PostgreSQL has opened and locked before it analyzes any parameter.
///
/// # Safety
///
/// PostgreSQL calls this function for a parameter of a statement that it analyzes after [`set_up`].
#[pg_guard]
unsafe extern "C-unwind" fn parameter(
    parse: *mut pg_sys::ParseState,
    reference: *mut pg_sys::ParamRef,
) -> *mut pg_sys::Node {
    // SAFETY: PostgreSQL passes valid structures, and the argument of `set_up`. The relation is null or open.
    unsafe {
        let target = &*(*parse).p_ref_hook_state.cast::<Target>();
        let found = (*parse).p_target_relation.as_ref().map(|relation| relation.rd_id);
        if found != Some(target.table) && !faults::on(Fault::NameTrusted) {
            (target.name_changed)(target.table);
        }
        let number = (*reference).number;
        let Some(&kind) = target.types.get(number as usize - 1) else { return ptr::null_mut() };
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
