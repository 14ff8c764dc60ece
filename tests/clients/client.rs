//! A program that uses a client. Each line that it prints is a step, an ID and a name.

use std::collections::BTreeMap;
use std::process::Command;

use cluster::{Answer, Cluster, Host, Recipe, ensure, loopback, output};

use crate::PAGE;
use crate::page::check_blocks;

/// The names that every program inserts: one row, two rows in bulk, and three rows with IDs from a block.
const ADA: [&str; 1] = ["Ada"];
const BULK: [&str; 2] = ["Grace", "Edsger"];
const BLOCK: [&str; 3] = ["Barbara", "Donald", "Alan"];

/// What creates the table `customers`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// The statement in the first section of the page.
    Page,
    /// The program, from its model.
    Program,
}

/// Runs the command of a client on a new server. `files` are the files in `tests/clients` with the blocks of this section of the
/// page. The client connects to an address if it is `over_tcp`, and otherwise to a Unix socket. Afterwards, the table must have
/// the default, and no ID that `snowflake_check` reports.
pub fn run(section: &str, files: &[&str], table: Table, over_tcp: bool, command: Command) -> Printed {
    check_blocks(section, files).unwrap();
    let name: String = section.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let address = loopback(1);
    let listens = if over_tcp { &address } else { "" };
    let mut server = Cluster::builder(&format!("clients_{name}")).set("listen_addresses", listens).create();
    let rules = "local all all trust\nhost all all 127.0.0.0/8 trust\n";
    Host::get().write(&server.dir().join("pg_hba.conf"), rules);
    server.start();
    let mut session = server.session();
    if table == Table::Page {
        let create = Recipe::of(PAGE, "The table").block("sql");
        session.batch_execute(&create).expect("the table of the page");
    }
    let mut command = server.client(command);
    if over_tcp {
        command.env("PGHOST", address);
    }
    let printed = output(&mut command);
    let default =
        "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
             WHERE adrelid = 'customers'::regclass AND attname = 'id' AND atttypid = 'bigint'::regtype";
    assert_eq!(session.all::<String>(default), ["snowflake_nextval()"]);
    assert_eq!(session.all::<String>("SELECT problem FROM snowflake_check('customers', 'id')"), [""; 0]);
    let query = "SELECT id::text || ' ' || name FROM customers ORDER BY customers.id";
    Printed { rows: session.all(query), lines: lines(&printed) }
}

/// A line of a program: an ID as it was printed, and a name.
type PrintedLine = (String, String);

/// The lines that a program printed, by their step, and the rows of the table.
pub struct Printed {
    lines: BTreeMap<String, Vec<PrintedLine>>,
    rows: Vec<String>,
}

impl Printed {
    /// Returns the lines of a step.
    pub fn step(&self, step: &str) -> &[PrintedLine] {
        self.lines.get(step).map_or(&[], Vec::as_slice)
    }

    /// Checks all steps: the client returns the ID of a row and the IDs of a bulk insert, inserts a block of IDs, and reads what it has
    /// inserted.
    pub fn check(&self) -> Result<(), String> {
        self.check_without_bulk()?;
        self.check_names("bulk", &BULK)
    }

    /// Checks all steps except the bulk insert, for a client that does not return the IDs of several rows.
    pub fn check_without_bulk(&self) -> Result<(), String> {
        self.check_names("insert", &ADA)?;
        self.check_names("block", &BLOCK)?;
        let ids: Vec<i64> = self.step("block").iter().map(|(id, _)| id.parse().expect("an ID")).collect();
        ensure!(ids.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{ids:?} is not a block");
        let read = self.step("read");
        let before: Vec<&String> = self.rows.iter().take(read.len()).collect();
        ensure!(read.len() >= ADA.len() + BLOCK.len(), "only {read:?} was read");
        ensure!(read.iter().map(row).eq(before.into_iter().cloned()), "{read:?} was read, not {:?}", self.rows);
        self.exact("right")
    }

    /// Checks that a step has printed rows with these names.
    fn check_names(&self, step: &str, names: &[&str]) -> Result<(), String> {
        let found: Vec<&str> = self.step(step).iter().map(|(_, name)| name.as_str()).collect();
        ensure!(found == names, "{step} has {found:?}");
        self.exact(step)
    }

    /// Checks that each line of a step is a row of the table.
    pub fn exact(&self, step: &str) -> Result<(), String> {
        for line in self.step(step) {
            let (id, name) = line;
            ensure!(id.parse::<f64>().is_ok(), "the client does not know the ID of {name}");
            ensure!(self.rows.contains(&row(line)), "the table has no row with ID {id} and name {name}");
        }
        Ok(())
    }
}

/// A line in the form of a row of the table.
fn row((id, name): &PrintedLine) -> String {
    format!("{id} {name}")
}

/// Reads the lines of a program.
fn lines(printed: &str) -> BTreeMap<String, Vec<PrintedLine>> {
    let mut found: BTreeMap<String, Vec<PrintedLine>> = BTreeMap::new();
    for line in printed.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[step, id, name] = words.as_slice() else { panic!("{line:?} is not a step, an ID and a name") };
        found.entry(step.into()).or_default().push((id.into(), name.into()));
    }
    found
}
