//! The high-water mark: it survives crashes, only permitted roles can lower it, and issuing begins at it.

mod accept_clock;
mod compare;
mod crashes;
mod drop_subscription;
mod flushes;
mod never_back;
mod set_mark;
mod start;
mod storage;
mod unread_message;
mod witness;
mod witness_lock;
mod worker;
