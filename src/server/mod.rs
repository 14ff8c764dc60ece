//! The code that the generator, the segments and the fleet share: clocks, waits, the log, statistics, and shared
//! memory.

pub mod clock;
pub mod log;
pub mod log_limit;
pub mod origin_state;
pub mod refusals;
pub mod shmem;
pub mod stats;
pub mod wait;
pub mod witness_holder;
