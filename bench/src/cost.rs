//! The cost of one ID compared with other keys: one session, below the limit of the layout.

use std::time::Duration;

use cluster::Client;

use crate::effort::{alternate, rounds, scaled};
use crate::machine::Machine;
use crate::report::{BenchReport, Figure, group};
use crate::server::{self, timed};
use crate::{rivals, rivals::Rival};

/// The number of rounds. Many rounds are needed to measure a small difference between two large numbers.
const ROUNDS: usize = 41;
/// The number of IDs in one burst: half of the number that the default layout can issue at once with `max_ahead` = 100 ms.
/// Therefore, no call is throttled.
const BURST: u64 = 200_000;
/// The pause after a burst, in which the lead returns to zero.
const PAUSE: Duration = Duration::from_millis(60);

/// Measures the cost of one call, without the cost of the loop around it.
pub fn run() -> BenchReport {
    let server = server::fresh("cost").start();
    let mut client = server::session(&server);
    let rivals = rivals::all(&mut client);
    let figures = vec![
        figure(&mut client, &rivals, 1, "cost of an ID, one call a row"),
        // The processor executes a single call in parallel with other work for the row. Ten calls a row show more of a call's
        // cost.
        figure(&mut client, &rivals, 10, "cost of an ID, ten calls a row"),
    ];
    let notes = "the cost of a call is the time of `SELECT count(f()) FROM generate_series(..)` minus the time of \
                 the same query with a constant, in one session and below the limit of the layout";
    BenchReport { part: "cost".into(), machine: Machine::of(&mut client), notes: vec![notes.into()], figures }
}

fn figure(client: &mut Client, rivals: &[Rival], calls: u64, name: &str) -> Figure {
    let rounds = rounds(ROUNDS);
    println!("==> {name}, {rounds} rounds");
    let burst = scaled(BURST);
    let sql = |expression: &str| {
        let columns = vec![format!("count({expression})"); calls as usize].join(", ");
        format!("SELECT {columns} FROM generate_series(1, {})", burst / calls)
    };
    let [nanos] = alternate(rounds, rivals.len(), |n| {
        std::thread::sleep(PAUSE);
        let difference = timed(client, &sql(rivals[n].expression)) - timed(client, &sql("1"));
        [difference * 1e9 / burst as f64]
    });
    let names: Vec<_> = rivals.iter().map(|rival| rival.name).collect();
    Figure::new(name, "ns", &format!("{} calls", group(burst)), &names, &nanos)
}
