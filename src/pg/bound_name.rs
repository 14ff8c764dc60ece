//! Statements that read or write one table, which is identified by its OID.
//!
//! A statement names its table, and PostgreSQL looks the name up again whenever it analyzes the statement. Locking the
//! table protects its name, but not the name of its schema. The owner of the schema could therefore replace the table by
//! a different one: its triggers and expressions would run with the privileges of this session, and its rows would be
//! read instead of those of the table. For this reason, the table is compared with the expected one during the analysis,
//! before PostgreSQL plans or runs anything.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::ptr;

use pgrx::datum::DatumWithOid;
use pgrx::{PgBox, pg_guard, pg_sys};

use crate::faults::{self, Fault};

/// The table of a statement, and what the analysis needs to compare it.
pub struct BoundName {
    table: pg_sys::Oid,
    /// The types of the parameters.
    types: Vec<pg_sys::Oid>,
    /// Raises the error for a table whose name belongs to a different table.
    name_changed: fn(pg_sys::Oid) -> !,
    /// True if the table was compared.
    is_compared: Cell<bool>,
}

impl BoundName {
    pub fn new(table: pg_sys::Oid, arguments: &[DatumWithOid<'_>], name_changed: fn(pg_sys::Oid) -> !) -> BoundName {
        let types = arguments.iter().map(DatumWithOid::oid).collect();
        BoundName { table, types, name_changed, is_compared: Cell::new(false) }
    }

    pub fn table(&self) -> pg_sys::Oid {
        self.table
    }

    /// Prepares a statement. All names in it must be qualified. At least one parameter must be in the same SELECT,
    /// INSERT or UPDATE as the name of the table.
    ///
    /// # Safety
    ///
    /// This process is connected to SPI. This value stays where it is for as long as the plan exists.
    pub unsafe fn prepare(&self, statement: &CStr) -> pg_sys::SPIPlanPtr {
        // SAFETY: the caller guarantees that this process is connected to SPI, and that PostgreSQL can pass this value to
        // `set_up` whenever it analyzes the statement.
        let plan = unsafe {
            pg_sys::SPI_prepare_params(statement.as_ptr(), Some(set_up), ptr::from_ref(self).cast_mut().cast(), 0)
        };
        assert!(self.is_compared.get(), "no parameter of the statement is next to the name of its table");
        plan
    }
}

/// Returns the values of the parameters, which are not NULL, in the form that PostgreSQL needs to run a plan.
pub fn parameters(arguments: &[DatumWithOid<'_>]) -> pg_sys::ParamListInfo {
    // SAFETY: the list has room for the arguments.
    unsafe {
        let parameters = pg_sys::makeParamList(arguments.len() as i32);
        let all = (*parameters).params.as_mut_slice(arguments.len());
        for (parameter, argument) in all.iter_mut().zip(arguments) {
            let value = argument.datum().expect("the value is not NULL").sans_lifetime();
            let pflags = pg_sys::PARAM_FLAG_CONST as u16;
            *parameter = pg_sys::ParamExternData { value, isnull: false, pflags, ptype: argument.oid() };
        }
        parameters
    }
}

/// Makes the analysis of a statement call [`parameter`].
///
/// # Safety
///
/// PostgreSQL calls this function before it analyzes the statement, with the argument that was passed when the statement
/// was prepared.
#[pg_guard]
unsafe extern "C-unwind" fn set_up(parse: *mut pg_sys::ParseState, name: *mut c_void) {
    // SAFETY: PostgreSQL passes a valid structure.
    unsafe {
        (*parse).p_paramref_hook = Some(parameter);
        (*parse).p_ref_hook_state = name;
    }
}

/// Returns the node of a parameter. Raises an error if the statement next to it does not write to, or read, the expected
/// table, which PostgreSQL has opened and locked before it analyzes any parameter.
///
/// # Safety
///
/// PostgreSQL calls this function for a parameter of a statement that it analyzes after [`set_up`].
#[pg_guard]
unsafe extern "C-unwind" fn parameter(
    parse: *mut pg_sys::ParseState,
    reference: *mut pg_sys::ParamRef,
) -> *mut pg_sys::Node {
    // SAFETY: PostgreSQL passes valid structures, and the argument of `set_up`.
    unsafe {
        let name = &*(*parse).p_ref_hook_state.cast::<BoundName>();
        if let Some(found) = table(parse) {
            if found != name.table && !faults::on(Fault::NameTrusted) {
                (name.name_changed)(name.table);
            }
            name.is_compared.set(true);
        }
        let number = (*reference).number;
        let Some(&kind) = name.types.get(number as usize - 1) else { return ptr::null_mut() };
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

/// Returns the table to which a statement writes or, if it only reads, the first table in its FROM clause. Returns `None`
/// if a SELECT has only subqueries in its FROM clause.
///
/// # Safety
///
/// The structure is valid, and its FROM clause was analyzed.
unsafe fn table(parse: *mut pg_sys::ParseState) -> Option<pg_sys::Oid> {
    // SAFETY: the caller guarantees that the structure is valid. The relation is null or open, and the list is one of
    // range table entries.
    unsafe {
        if let Some(written) = (*parse).p_target_relation.as_ref() {
            return Some(written.rd_id);
        }
        let list = (*parse).p_rtable.as_ref()?;
        let entries = std::slice::from_raw_parts(list.elements, list.length as usize).iter();
        let mut entries = entries.map(|cell| &*cell.ptr_value.cast::<pg_sys::RangeTblEntry>());
        entries.find(|entry| entry.rtekind == pg_sys::RTEKind::RTE_RELATION).map(|entry| entry.relid)
    }
}
