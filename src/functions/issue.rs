//! The functions that issue IDs. They only check their arguments. The generator issues the IDs.

use flake::Request;
use pgrx::prelude::*;

use crate::config::{guc, identity};
use crate::generator::{current, draw};
use crate::message::issue::IssueProblem;

/// The maximum number of IDs that one call of `snowflake_nextval_batch` issues. In the default layout, a server needs
/// about 2.5 seconds to issue this many IDs.
const MAX_BATCH: i32 = 10_000_000;

/// Issues one ID.
#[pg_extern(volatile, parallel_safe)]
fn snowflake_nextval() -> i64 {
    draw::draw(Request::UpTo(1)).take().expect("a granted run is not empty")
}

/// Issues `count` IDs, which increase but are not necessarily consecutive. The IDs are drawn while the rows are
/// fetched, at most as many at a time as fit into one tick.
#[pg_extern(volatile, strict, parallel_safe)]
fn snowflake_nextval_batch(count: i32) -> SetOfIterator<'static, i64> {
    if !(1..=MAX_BATCH).contains(&count) {
        IssueProblem::Count { count, max: MAX_BATCH as u64, more: "For more IDs, call the function again." }.raise();
    }
    let mut left = u64::from(count.unsigned_abs());
    let mut issued = draw::draw(Request::UpTo(left));
    SetOfIterator::new(std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let id = issued.take().or_else(|| {
            issued = draw::draw(Request::UpTo(left));
            issued.take()
        });
        left -= 1;
        id
    }))
}

/// Issues `count` consecutive IDs from one tick and returns the first ID.
#[pg_extern(volatile, strict, parallel_safe)]
fn snowflake_reserve(count: i32) -> i64 {
    let identity = identity::get();
    let layout = identity.format.layout;
    if !layout.sequence_lowest() {
        IssueProblem::NotConsecutive { layout }.raise();
    }
    let max = identity.limits.largest_grant(guc::pace());
    match u64::try_from(count) {
        Ok(count) if (1..=max).contains(&count) => draw::draw(Request::InOneTick(count)).take_block(),
        _ => IssueProblem::Count {
            count,
            max,
            more: match max < layout.sequence_capacity() {
                true => {
                    "The time spanned by reserved IDs must not exceed half of \"snowflake_pg.max_ahead\". Increase this parameter, or use \
                     snowflake_nextval_batch()."
                }
                false => "All reserved IDs must fit into one tick. For more IDs, use snowflake_nextval_batch().",
            },
        }
        .raise(),
    }
}

/// Returns the last ID issued to this session.
#[pg_extern(volatile, parallel_restricted)]
fn snowflake_currval() -> i64 {
    // Raises an error if the library is not preloaded.
    identity::get();
    current::get().unwrap_or_else(|| IssueProblem::NoCurrentId.raise())
}
