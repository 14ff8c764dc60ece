//! Patroni with etcd and three members: types the blocks of docs/patroni.md, and checks that no ID repeats in switchovers and failovers.

mod failovers;
mod frozen;
mod nights;
mod page;
mod traps;
