//! The features of a table that could run other code when a row is written.
#![allow(unsafe_code)]

use pgrx::pg_sys;

use crate::pg::relation;
use crate::pg::triggers::{Trigger, Triggers};

/// A feature of a table that can run code when a row is written, or a property that makes it impossible to exclude
/// this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteObstacle {
    /// The table is a partition or is not an ordinary table.
    Kind,
    /// The table has other columns, or columns of other types.
    Columns,
    /// The table has an unexpected trigger with this name, which is in the database's encoding.
    Trigger(Vec<u8>),
    Rule,
    /// Row security is enabled on the table.
    Policies,
    Check,
    /// A column has a default or is generated.
    Default,
    /// The table has an index other than the primary key, or it has no primary key.
    Index,
}

/// Returns the first feature that makes a table not plain. A plain table has these columns with these types, a primary
/// key, and only triggers that are `expected`. The table must be locked.
pub fn obstacle(
    table: pg_sys::Oid,
    columns: &[(&[u8], pg_sys::Oid)],
    expected: impl Fn(&Trigger<'_>) -> bool,
) -> Option<WriteObstacle> {
    let mut found = None;
    // SAFETY: the table is locked, and is open while its description is read. An existing relation has a form and a
    // description of its columns. Its constraints and its rules are null or valid.
    let (all, count) = unsafe {
        let relation = pg_sys::try_relation_open(table, pg_sys::NoLock as i32);
        let open = relation.as_ref()?;
        let form = &*open.rd_rel;
        let constraints = (*open.rd_att).constr.as_ref();
        let mut check = |is_wrong: bool, obstacle| {
            if is_wrong && found.is_none() {
                found = Some(obstacle);
            }
        };
        check(form.relkind as u8 != pg_sys::RELKIND_RELATION || form.relispartition, WriteObstacle::Kind);
        check(!open.rd_rules.is_null(), WriteObstacle::Rule);
        check(form.relrowsecurity, WriteObstacle::Policies);
        check(constraints.is_some_and(|some| some.num_check > 0), WriteObstacle::Check);
        check(constraints.is_some_and(|some| some.num_defval > 0), WriteObstacle::Default);
        let (all, count) = (Triggers::of(relation), (*open.rd_att).natts as i16);
        // This call comes last because it can read catalogs.
        let indexes = pg_sys::RelationGetIndexList(relation);
        let is_key =
            indexes.as_ref().is_some_and(|list| list.length == 1) && (*relation).rd_pkindex != pg_sys::InvalidOid;
        check(!is_key, WriteObstacle::Index);
        pg_sys::relation_close(relation, pg_sys::NoLock as i32);
        (all, count)
    };
    // The column must have exactly this type, because a domain can have a CHECK constraint. A dropped column has no
    // type.
    let is_expected = |number: i16, expected: &(&[u8], pg_sys::Oid)| {
        let (name, kind) = (relation::column_name(table, number), relation::declared_type(table, number));
        name.is_some_and(|name| name == expected.0) && kind == Some(expected.1)
    };
    let kept: Vec<i16> = (1..=count).filter(|number| relation::declared_type(table, *number).is_some()).collect();
    if kept.len() != columns.len() || !kept.iter().zip(columns).all(|(number, column)| is_expected(*number, column)) {
        return Some(WriteObstacle::Columns);
    }
    let other = all.iter().find(|trigger| !expected(trigger) && !trigger.is_referenced_key());
    found.or(other.map(|trigger| WriteObstacle::Trigger(trigger.name().to_vec())))
}
