//! The functions that issue IDs: arguments in, errors out, and nothing else.

use flake::Request;
use pgrx::prelude::*;

use crate::failure::Failure;
use crate::identity;
use crate::issue;

/// Most IDs one call of `snowflake_nextval_batch` issues: about 2.5 seconds of the default layout's capacity.
const MAX_BATCH: i32 = 10_000_000;

/// Issues one ID.
#[pg_extern(volatile, parallel_safe)]
fn snowflake_nextval() -> i64 {
    issue::draw(Request::UpTo(1)).take().unwrap_or_else(|| Failure::Unreachable("an empty run").raise())
}

/// Issues `count` IDs, increasing but not necessarily consecutive; drawn as they are fetched, a tick's worth at a time.
#[pg_extern(volatile, strict, parallel_safe)]
fn snowflake_nextval_batch(count: i32) -> SetOfIterator<'static, i64> {
    if !(1..=MAX_BATCH).contains(&count) {
        Failure::Count { count, max: MAX_BATCH as u64, more: "For more IDs, call it again." }.raise();
    }
    let mut left = u64::from(count.unsigned_abs());
    let mut issued = issue::draw(Request::UpTo(left));
    SetOfIterator::new(std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let id = issued.take().or_else(|| {
            issued = issue::draw(Request::UpTo(left));
            issued.take()
        });
        left -= 1;
        id
    }))
}

/// Issues `count` consecutive IDs of one tick and returns the first.
#[pg_extern(volatile, strict, parallel_safe)]
fn snowflake_reserve(count: i32) -> i64 {
    let layout = identity::get().scheme.layout;
    if !layout.sequence_lowest() {
        Failure::NotConsecutive { layout }.raise();
    }
    let max = layout.sequence_capacity();
    match u64::try_from(count) {
        Ok(count) if (1..=max).contains(&count) => issue::draw(Request::InOneTick(count)).take_block(),
        _ => Failure::Count {
            count,
            max,
            more: "A reservation lies inside one tick; for more IDs, use snowflake_nextval_batch.",
        }
        .raise(),
    }
}

/// The last ID issued to this session.
#[pg_extern(volatile, parallel_restricted)]
fn snowflake_currval() -> i64 {
    // The error that the library is not preloaded comes first.
    identity::get();
    issue::current().unwrap_or_else(|| Failure::NoCurrentId.raise())
}
