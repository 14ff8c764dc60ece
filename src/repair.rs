//! What a superuser does after the clock or the mark was wrong. Each leaves a line in the server's log.

use std::time::Duration;

use flake::Mark;
use pgrx::prelude::*;

use crate::argument::Text;
use crate::failure::Failure;
use crate::identity::{self, Identity};
use crate::wait::{self, Wait};
use crate::{clock, extend, load, mark, name, row_security, shmem, timestamp};

/// Takes the server's clock for right: IDs follow it from now on. Returns by how much generator time moved.
#[pg_extern(volatile, parallel_unsafe)]
fn snowflake_accept_clock() -> Interval {
    let identity @ Identity { scheme, limits, .. } = identity::get();
    load::load(identity);
    // Once: what is checked is what is accepted.
    let reading = clock::reading();
    let shown = reading.wall;
    if limits.word_at(shown).is_none_or(|word| word > limits.last_word()) {
        Failure::ClockOutside { clock: timestamp::of(shown), scheme: *scheme }.raise();
    }
    let moved = loop {
        match shmem::state().accept_clock(|| reading) {
            Some(moved) => break moved / 1_000,
            None => wait::on_latch(Wait::Mark, Duration::from_millis(1)),
        }
    };
    ereport!(
        PgLogLevel::LOG,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("snowflake_pg: the clock was accepted at {}", timestamp::utc(timestamp::of(shown))),
        format!("Generator time moved forward by {:.3} s.", moved as f64 / 1e6)
    );
    // In range: two readings of a clock that ends in 2554.
    Interval::new(0, 0, moved as i64).unwrap_or_else(|_| Failure::Unreachable("an interval out of range").raise())
}

/// Sets the high-water mark and returns what it was, NULL where there was none. Lowered only where `table` shows that no ID
/// at or above it exists, or by force.
#[pg_extern(sql = "CREATE FUNCTION snowflake_set_mark(mark bigint, \"table\" regclass DEFAULT NULL, \
           \"column\" text DEFAULT 'id', force boolean DEFAULT false) RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c \
           AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_set_mark(
    mark: Option<i64>,
    table: Option<pg_sys::Oid>,
    column: Option<Text<'_>>,
    force: Option<bool>,
) -> Option<i64> {
    let identity = identity::get();
    if let Some(failure) = load::refusal(identity) {
        failure.raise();
    }
    let (given, force) = (mark?, force.unwrap_or(false));
    let mark = u64::try_from(given).ok().and_then(Mark::stored).filter(|_| given <= identity.scheme.layout.last_id());
    let mark = mark.unwrap_or_else(|| Failure::MarkRange { mark: given, layout: identity.scheme.layout }.raise());
    if !force {
        refuse_far_ahead(identity, given, mark);
        if let Some(table) = table {
            let column = column.map_or("id".into(), Text::name);
            refuse_below_ids(identity, given, table, &column);
        }
    }
    load::wait_for_keeper();
    let state = shmem::state();
    let mut before = None;
    let written = mark::set(mark, |current| {
        before = current;
        if let Some(current) = current.filter(|current| mark < *current && table.is_none() && !force) {
            Failure::MarkLowered { mark: given, current: current.value() }.raise();
        }
        state.unload();
    });
    let text = before.map_or("missing".into(), |before| before.value().to_string());
    ereport!(
        PgLogLevel::LOG,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("snowflake_pg: the high-water mark was set to {given}{}", if force { " by force" } else { "" }),
        format!("It was {text}.")
    );
    extend::acknowledged(written);
    before.map(|before| i64::try_from(before.value()).unwrap_or(i64::MAX))
}

/// A mark more than a day ahead of the clock would end issuing.
fn refuse_far_ahead(identity: &Identity, given: i64, mark: Mark) {
    let (begins, clock) = (identity.limits.time(identity.first_word(mark)), clock::wall());
    if begins.saturating_sub(clock) > extend::MAX_LEAD {
        Failure::MarkTooHigh { mark: given, clock: timestamp::of(clock) }.raise();
    }
}

/// Looks for this server's IDs at or above the mark. The table is locked against writers until the transaction ends, for a
/// row that is not committed yet would not be seen; nor would one that this transaction's snapshot is too old for, that it
/// has deleted itself, or that a policy hides.
#[allow(unsafe_code)]
fn refuse_below_ids(identity: &Identity, mark: i64, table: pg_sys::Oid, column: &str) {
    // SAFETY: plain variables of this process.
    let alone = unsafe {
        pg_sys::XactIsoLevel < pg_sys::XACT_REPEATABLE_READ as i32
            && pg_sys::GetTopTransactionIdIfAny().into_inner() == 0
    };
    if !alone {
        Failure::MarkTransaction.raise();
    }
    let name = name::of_relation(table).unwrap_or_else(|| Failure::NoTable { table: table.to_u32() }.raise()).quoted();
    let column = name::identifier(column);
    let (mask, number) = identity.stamp.node_field();
    Spi::run(&format!("LOCK TABLE {name} IN SHARE MODE")).unwrap_or_else(name::refused);
    let _visible = row_security::Off::new();
    let highest: Option<i64> = Spi::get_one_with_args(
        &format!(
            "SELECT pg_catalog.max({column}) FROM {name} WHERE {column} OPERATOR(pg_catalog.>=) $1 \
             AND {column} OPERATOR(pg_catalog.&) $2 OPERATOR(pg_catalog.=) $3"
        ),
        &[mark.into(), mask.into(), number.into()],
    )
    .unwrap_or_else(name::refused);
    if let Some(highest) = highest {
        Failure::MarkBelowIds { mark, table: name, highest }.raise();
    }
}
