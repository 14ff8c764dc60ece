//! Issues IDs with a worker ID that is given by hand, and stores the high-water mark in a file. After a crash, or if the clock was set
//! back, a new process begins above every ID that the process before can have issued.
//!
//! ```sh
//! cargo run -p flake --example mark_file -- 900 shop.mark 3
//! ```
//!
//! The arguments are the worker ID, the file, and the number of IDs. No other process and no server has, has had or will ever have this
//! worker ID.

mod clock;

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::num::IntErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use clock::Clock;
use flake::{IdFormat, Issuer, Mark, Node, Obstacle};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [worker, file, count] = arguments.as_slice() else {
        return Err("usage: mark_file WORKER_ID FILE COUNT".into());
    };
    let format = IdFormat::parse("41:10:12").expect("this is a layout");
    let node = Node { datacenter: 0, worker: number("worker ID", worker)? };
    let count = number("number of IDs", count)?;
    let mut ids = MarkedIds::open(&format, node, Path::new(file))?;
    for _ in 0..count {
        println!("{}", ids.next_id()?);
    }
    Ok(())
}

/// Reads an argument.
fn number(what: &str, text: &str) -> Result<u32, String> {
    text.parse::<u32>().map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => format!("{what} \"{text}\" is too large"),
        _ => format!("{what} \"{text}\" is not a number"),
    })
}

/// The issuer, and the file of its mark. The file stays locked, so that a second process with this file gets an error.
struct MarkedIds {
    clock: Clock,
    issuer: Issuer,
    path: PathBuf,
    /// The generator to which the marks belong, as the file names it.
    owner: String,
    _lock: File,
}

impl MarkedIds {
    fn open(format: &IdFormat, node: Node, path: &Path) -> Result<MarkedIds, Box<dyn Error>> {
        let lock_path = with_suffix(path, ".lock");
        let lock =
            File::create(&lock_path).map_err(|error| format!("cannot create {}: {error}", lock_path.display()))?;
        lock.try_lock().map_err(|error| format!("another process may be using {}: {error}", path.display()))?;
        // The mark of another worker ID, layout or epoch says nothing about the IDs of this one.
        let IdFormat { layout, epoch } = format;
        let (epoch, Node { datacenter, worker }) = (epoch.unix_ms(), node);
        let owner = format!("layout {layout} epoch {epoch} datacenter {datacenter} worker {worker}");
        let mark = match fs::read_to_string(path) {
            Ok(text) => read_mark(text.trim(), &owner).map_err(|reason| format!("{} {reason}", path.display()))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Mark::NOTHING_ISSUED,
            Err(error) => return Err(format!("cannot read {}: {error}", path.display()).into()),
        };
        let clock = Clock::start();
        let issuer = Issuer::start(format, node, mark, clock.read())?;
        Ok(MarkedIds { clock, issuer, path: path.into(), owner, _lock: lock })
    }

    fn next_id(&mut self) -> Result<i64, Box<dyn Error>> {
        loop {
            match self.issuer.next_id(|| self.clock.monotonic()) {
                Ok(id) if self.issuer.is_due() => {
                    self.reserve(0)?;
                    return Ok(id);
                }
                Ok(id) => return Ok(id),
                Err(Obstacle::NotReserved(needed)) => self.reserve(needed)?,
                Err(Obstacle::Throttled(pause)) => thread::sleep(pause),
                Err(obstacle) => return Err(obstacle.into()),
            }
        }
    }

    /// Stores the next mark, and then raises the limit of the issuer. The order matters: a mark that is not on disk protects nothing.
    fn reserve(&self, needed: u64) -> Result<(), Box<dyn Error>> {
        let planned = self.issuer.reserve(self.clock.monotonic(), needed)?;
        self.store(planned.mark())
            .map_err(|error| format!("cannot store the mark in {}: {error}", self.path.display()))?;
        planned.publish(self.clock.monotonic());
        Ok(())
    }

    /// Replaces the file.
    fn store(&self, mark: Mark) -> io::Result<()> {
        let new = with_suffix(&self.path, ".new");
        let mut file = File::create(&new)?;
        writeln!(file, "{} mark {}", self.owner, mark.value())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        // The new name is durable when the directory is.
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()
    }
}

/// Reads the mark in the text of a file, which must belong to this generator.
fn read_mark(text: &str, owner: &str) -> Result<Mark, String> {
    let (found, mark) = text.rsplit_once(" mark ").ok_or("does not contain a mark")?;
    if found != owner {
        return Err(format!("contains a mark for \"{found}\", not for \"{owner}\""));
    }
    mark.parse().ok().and_then(Mark::stored).ok_or_else(|| "does not contain a mark".into())
}

/// Returns a path with a suffix after the whole file name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
