//! The current role, whose privileges statements use.
#![allow(unsafe_code)]

use pgrx::pg_sys;

use crate::faults::{self, Fault};
use crate::pg::{c_string, relation};

/// Changes the current role until this value is dropped, as PostgreSQL does for functions in indexes. Settings that are
/// changed meanwhile get their previous values back, so code of this role cannot change how the statements that follow
/// are run. After an error, the end of the transaction or subtransaction restores the role and the settings.
pub struct As {
    role: pg_sys::Oid,
    context: i32,
    /// The nesting level of the settings.
    level: i32,
}

impl As {
    /// Makes this role the current one. Statements cannot change the role, create temporary objects, or queue triggers
    /// for the end of the transaction.
    pub fn new(role: pg_sys::Oid) -> As {
        As::with(role, 0)
    }

    /// The same, with more flags of PostgreSQL's security context.
    fn with(role: pg_sys::Oid, more: u32) -> As {
        let flags = pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION | more;
        let mut before = As { role: pg_sys::InvalidOid, context: 0, level: 0 };
        // SAFETY: the functions read and set variables of this process. The role owns a table, so it exists. `drop` exits the
        // nesting level. After an error, the end of the transaction exits it.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&raw mut before.role, &raw mut before.context);
            pg_sys::SetUserIdAndSecContext(role, before.context | flags as i32);
            before.level = pg_sys::NewGUCNestLevel();
        }
        before
    }

    /// Makes the owner of a table the current role if the current role is a superuser. The planner calls functions that
    /// the owner has used in indexes and constraints, and they would otherwise run as the superuser. Like a superuser,
    /// the owner then reads all rows, even if row security is forced for the owner. The code of a view runs with the
    /// caller's privileges in any case, so the role does not change for a view.
    pub fn reader(table: pg_sys::Oid) -> Option<As> {
        let owner = relation::owner(table).filter(|_| is_superuser() && !relation::is_view(table));
        owner.filter(|_| !faults::on(Fault::ReadAsCaller)).map(|owner| As::with(owner, pg_sys::SECURITY_NOFORCE_RLS))
    }
}

impl Drop for As {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let keeps = faults::on(Fault::SettingsKept);
            // SAFETY: these are the nesting level and the values of `with`. The level ends first, because code that checks a
            // setting must not run as the previous role.
            unsafe {
                pg_sys::AtEOXact_GUC(keeps, self.level);
                pg_sys::SetUserIdAndSecContext(self.role, self.context);
            }
        }
    }
}

/// Returns true if the current user is a superuser.
pub fn is_superuser() -> bool {
    // SAFETY: the function reads the catalog caches in a transaction.
    unsafe { pg_sys::superuser() }
}

/// Returns the OID of the role that logged in to this session. Neither SET ROLE nor SECURITY DEFINER functions change
/// it.
pub fn of_session() -> u32 {
    // SAFETY: the function reads a variable of this process.
    unsafe { pg_sys::GetSessionUserId() }.to_u32()
}

/// Returns the quoted name of the current role.
pub fn current() -> String {
    // SAFETY: the function reads a variable of this process.
    name(unsafe { pg_sys::GetUserId() }).unwrap_or_default()
}

/// Returns the quoted name of a role.
pub fn name(role: pg_sys::Oid) -> Option<String> {
    // SAFETY: the function reads the catalog caches in a transaction. It returns null or a C string that is valid for
    // the duration of this call.
    let name = unsafe { c_string::bytes(pg_sys::GetUserNameFromId(role, true)) };
    name.map(|name| relation::identifier(&relation::utf8(name)))
}
