//! The high-water mark: kept over crashes, lowered by nobody but who may, and the place where issuing begins.

mod accept_clock;
mod compare;
mod crashes;
mod flushes;
mod origin;
mod set_mark;
mod start;
mod storage;
mod worker;
