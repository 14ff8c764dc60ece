//! Sessions that number invoices in several ways, and the check that an auditor makes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cluster::{Answer, Chance, Client, Cluster, ensure};
use postgres::NoTls;

/// How the rows get their numbers. All are texts with three periods, `A`, `B` and `C`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// `snowflake_serial` as the default of the column.
    Default,
    /// The trigger that numbers rows at COMMIT.
    AtCommit,
    /// A mistake: a sequence.
    Sequence,
    /// A mistake: one more than the largest number that the transaction sees.
    Largest,
    /// A mistake: the number is taken in a transaction of its own.
    Outside,
}

/// The years of the three periods.
pub const YEARS: [i64; 3] = [2024, 2025, 2026];

/// Creates the series and the table.
pub fn prepare(server: &Cluster, how: Numbering) {
    let mut session = server.session();
    session
        .run(
            "SELECT snowflake_create_series('invoice', 'INV-{YYYY}-{n:6}', time_zone => 'UTC');
         CREATE TABLE invoices (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), year integer, number text, booked date);
         CREATE SEQUENCE numbers;",
        );
    if how == Numbering::AtCommit {
        let number = "SELECT snowflake_number_at_commit('invoices', 'number', 'invoice', 'booked')";
        session.run(number);
    }
}

/// Inserts rows in one transaction. Returns their IDs if the transaction was committed.
fn work(client: &mut Client, chance: &mut Chance, how: Numbering) -> Result<Vec<i64>, postgres::Error> {
    let mut ids = Vec::new();
    let mut numbers = Vec::new();
    let year = *chance.pick(&YEARS);
    let rows = chance.between(1, 3);
    if how == Numbering::Outside {
        for _ in 0..rows {
            let number: String =
                client.query_one(&format!("SELECT snowflake_serial('invoice', date '{year}-05-05')"), &[])?.get(0);
            numbers.push(number);
        }
    }
    let mut transaction = client.transaction()?;
    for n in 0..rows {
        let number = match how {
            Numbering::Default => format!("snowflake_serial('invoice', date '{year}-05-05')"),
            Numbering::AtCommit => "NULL".into(),
            Numbering::Sequence => format!("format('INV-%s-%s', {year}, to_char(nextval('numbers'), 'FM000000'))"),
            Numbering::Largest => format!(
                "(SELECT format('INV-%s-%s', {year}, to_char(count(*) + 1, 'FM000000')) FROM invoices WHERE year = {year})"
            ),
            Numbering::Outside => format!("'{}'", numbers[n as usize]),
        };
        let insert = format!(
            "INSERT INTO invoices (year, number, booked) VALUES ({year}, {number}, '{year}-05-05') RETURNING id"
        );
        match chance.between(0, 5) {
            // A savepoint that is rolled back takes its number back.
            0 => {
                let mut inner = transaction.savepoint("s")?;
                inner.query_one(&insert, &[])?;
                inner.rollback()?;
            }
            _ => ids.push(transaction.query_one(&insert, &[])?.get(0)),
        }
        if chance.one_in(4) {
            thread::sleep(chance.millis(2));
        }
    }
    if chance.one_in(3) {
        transaction.rollback()?;
        return Ok(Vec::new());
    }
    transaction.commit()?;
    Ok(ids)
}

/// Sessions that insert rows until they are told to end. They connect again after their server has gone.
pub struct Accountants {
    stop: Arc<AtomicBool>,
    /// The IDs of the rows whose COMMIT has succeeded.
    committed: Arc<Mutex<BTreeSet<i64>>>,
    sessions: Vec<JoinHandle<()>>,
}

impl Accountants {
    /// Starts sixteen sessions.
    pub fn start(server: &Cluster, how: Numbering, chance: &mut Chance) -> Accountants {
        let (stop, committed) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<BTreeSet<i64>>>::default());
        let one = |_| {
            let (stop, committed, mut chance) = (stop.clone(), committed.clone(), chance.fork());
            let config = server.config("postgres");
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let Ok(mut client) = config.clone().connect_timeout(Duration::from_secs(2)).connect(NoTls) else {
                        thread::sleep(Duration::from_millis(5));
                        continue;
                    };
                    while !stop.load(Ordering::Relaxed) && !client.is_closed() {
                        // An error is a killed session, a deadlock or a server that has ended. The transaction was then not
                        // committed, or nobody knows.
                        if let Ok(ids) = work(&mut client, &mut chance, how) {
                            committed.lock().expect("nobody panics with it").extend(ids);
                        }
                    }
                }
            })
        };
        let sessions = (0..16).map(one).collect();
        Accountants { stop, committed, sessions }
    }

    /// Returns how many rows were committed so far.
    pub fn count(&self) -> usize {
        self.committed.lock().expect("nobody panics with it").len()
    }

    /// Ends the sessions, and returns the IDs of the rows that were committed.
    pub fn finish(self) -> BTreeSet<i64> {
        self.stop.store(true, Ordering::Relaxed);
        for session in self.sessions {
            session.join().expect("a session's thread ends");
        }
        let committed = self.committed.lock().expect("nobody panics with it");
        committed.clone()
    }
}

/// Checks that the numbers of each period are 1, 2, 3 and so on, without the functions of the extension, and that each row whose COMMIT
/// succeeded is there with its number. Returns the number of rows.
pub fn audit(server: &Cluster, committed: &BTreeSet<i64>) -> Result<usize, String> {
    let mut session = server.connect();
    let rows = session.query("SELECT id, year, number FROM invoices", &[]).map_err(|e| e.to_string())?;
    let mut there = BTreeSet::new();
    let mut numbers = YEARS.map(|_| Vec::new());
    for row in &rows {
        let (id, year, number): (i64, i32, Option<String>) = (row.get(0), row.get(1), row.get(2));
        let number = number.ok_or(format!("row {id} has no number"))?;
        let (prefix, digits) = number.split_at(9);
        ensure!(prefix == format!("INV-{year}-"), "row {id} of {year} has number {number}");
        let period = YEARS.iter().position(|known| *known == i64::from(year)).ok_or("another year")?;
        numbers[period].push(digits.parse::<usize>().map_err(|e| format!("{number}: {e}"))?);
        there.insert(id);
    }
    for (year, mut numbers) in YEARS.into_iter().zip(numbers) {
        numbers.sort_unstable();
        if let Some(pair) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("number {} of {year} came twice", pair[0]));
        }
        let hole = numbers.iter().zip(1..).find(|(number, expected)| *number != expected);
        ensure!(hole.is_none(), "{year} has a hole: {hole:?}");
    }
    let lost = committed.difference(&there).count();
    ensure!(lost == 0, "{lost} committed rows are lost");
    Ok(rows.len())
}

/// Checks that the extension finds no gap either.
pub fn no_gaps(server: &Cluster) -> Result<(), String> {
    let gaps: Vec<String> =
        server.connect().all("SELECT g::text FROM snowflake_serial_gaps('invoices', 'number', 'invoice') AS g");
    ensure!(gaps.is_empty(), "gaps: {gaps:?}");
    Ok(())
}
