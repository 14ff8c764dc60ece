//! The function with which a superuser sets a wrong high-water mark, and the checks that no ID of this server is above
//! the new mark. Each call writes a message to the server log.

use flake::{MAX_LEAD, Mark};
use pgrx::prelude::*;

use crate::config::identity::{self, Identity};
use crate::functions::key_column::{self, KeyColumn};
use crate::generator::{assigned, durable, mark_storage, refusal, witness};
use crate::message;
use crate::message::argument::ArgumentProblem;
use crate::message::fleet::FleetProblem;
use crate::message::mark::SetMarkProblem;
use crate::pg::local_setting::LocalSetting;
use crate::pg::role::As;
use crate::pg::text_arg::Text;
use crate::pg::{bound_plan, relation, timestamp, transaction};
use crate::server::{clock, shmem};

/// Sets the high-water mark and returns its previous value, or NULL if there was no mark. The mark is lowered only if
/// `relation` has no ID at or above the new mark, or if `force` is set.
#[pg_extern(sql = "CREATE FUNCTION snowflake_set_mark(mark bigint, relation regclass DEFAULT NULL, \
           key text DEFAULT 'id', force boolean DEFAULT false) RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c \
           AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_set_mark(
    mark: Option<i64>,
    relation: Option<pg_sys::Oid>,
    key: Option<Text<'_>>,
    force: Option<bool>,
) -> Option<i64> {
    let own = identity::get();
    if let Some(error) = refusal::of_server(own) {
        error.raise();
    }
    let identity = assigned::take();
    let (given, force) = (mark?, force.unwrap_or(false));
    let mark = u64::try_from(given).ok().and_then(Mark::stored).filter(|_| given <= identity.format.layout.last_id());
    let mark = mark.unwrap_or_else(|| SetMarkProblem::Range { mark: given, layout: identity.format.layout }.raise());
    if !force {
        refuse_far_ahead(identity, given, mark);
        if let Some(table) = relation {
            refuse_below_ids(identity, given, table, key.unwrap_or(Text(b"id")));
        }
    }
    let check = |current: Option<Mark>| {
        let lowered = current.filter(|current| mark < *current && relation.is_none() && !force);
        lowered
            .map_or(Ok(()), |current| Err(SetMarkProblem::Lowered { mark: given, current: current.value() }.report()))
    };
    mark_storage::wait_for_origin();
    // The arguments are checked first, because a failed call must not keep another server from issuing IDs.
    if let Ok(current) = mark_storage::read() {
        check(Some(current)).unwrap_or_else(|report| report.raise());
        witness::claim(identity);
    }
    let state = shmem::state();
    let (mut before, mut set) = (None, mark);
    let written = mark_storage::set(|current| {
        // The worker ID cannot change while the mark is locked.
        if state.assignment().get() != identity.assignment {
            return Err(FleetProblem::WorkerIdChanged.report());
        }
        check(current)?;
        // After a restore, the latest IDs are missing from the table, so it cannot prove that the mark in the witness
        // can be lowered.
        let reverted = current.is_none_or(|current| current < witness::mark());
        if !force && (relation.is_none() || reverted) {
            set = mark.max(witness::mark());
        }
        before = current;
        state.unload();
        Ok(set)
    });
    let written = written.unwrap_or_else(|report| report.raise());
    // Wakes the sessions that are waiting for an extension of the previous generation.
    shmem::extended().wake_all();
    message::mark::was_set(set.value(), force, before.map(Mark::value));
    durable::acknowledged(written);
    before.map(|before| i64::try_from(before.value()).unwrap_or(i64::MAX))
}

/// Raises an error if the mark is more than one day ahead of the clock. With such a mark, the server would refuse to
/// issue IDs after a restart.
fn refuse_far_ahead(identity: &Identity, given: i64, mark: Mark) {
    let (begins, clock) = (identity.limits.time(identity.first_word(mark)), clock::wall());
    if begins.saturating_sub(clock) > MAX_LEAD {
        SetMarkProblem::TooHigh { mark: given, clock: timestamp::of(clock) }.raise();
    }
}

/// Raises an error if the table contains IDs of this server at or above the mark. The search does not find uncommitted
/// rows, so the table is locked against writers until the transaction ends. The search also does not find rows that are
/// newer than this transaction's snapshot, rows that this transaction has deleted, and rows that a policy hides. If
/// such rows are possible, an error is raised.
fn refuse_below_ids(identity: &Identity, mark: i64, table: pg_sys::Oid, key: Text<'_>) {
    if transaction::keeps_snapshot() || transaction::has_written() {
        SetMarkProblem::Transaction.raise();
    }
    let name = relation::lock_all(table, "SHARE").unwrap_or_else(|| ArgumentProblem::no_table(table));
    let (mask, number) = identity.stamp.node_field();
    let KeyColumn { id, .. } = key_column::of(table, &name, key);
    let name = name.quoted();
    let _reader = As::reader(table);
    let _visible = LocalSetting::without_row_security();
    let query = format!(
        "SELECT pg_catalog.max({id}) FROM {name} WHERE {id} OPERATOR(pg_catalog.>=) $1 \
         AND {id} OPERATOR(pg_catalog.&) $2 OPERATOR(pg_catalog.=) $3"
    );
    let arguments = [mark.into(), mask.into(), number.into()];
    let highest = bound_plan::first(table, query, &arguments, ArgumentProblem::name_changed, |row| row.get(1));
    if let Some(highest) = highest.flatten() {
        SetMarkProblem::BelowIds { mark, table: name, highest }.raise();
    }
}
