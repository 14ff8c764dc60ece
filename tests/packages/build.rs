//! Runs `scripts/package` once for all tests of a run, and reads its packages.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::OnceLock;

use cluster::{Scratch, command, major, output, repository};

/// The version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The packages below `target/packages`.
pub struct Packages {
    pub debian: PathBuf,
    pub archive: PathBuf,
}

impl Packages {
    /// Builds the packages when a test first needs them.
    pub fn built() -> &'static Packages {
        static PACKAGES: OnceLock<Packages> = OnceLock::new();
        PACKAGES.get_or_init(|| {
            let dir = repository().join("target/packages");
            fs::create_dir_all(&dir).expect("target/ can be written");
            // Tests run as separate processes.
            let lock = File::create(dir.join("lock")).expect("target/ can be written");
            lock.lock().expect("a lock file can be locked");
            let (run, known) = (run(), dir.join("run"));
            if fs::read_to_string(&known).ok().as_ref() != Some(&run) {
                build();
                fs::write(known, run).expect("target/ can be written");
            }
            let architecture = output(command("dpkg").arg("--print-architecture"));
            let machine = output(command("uname").arg("-m"));
            let debian = format!("postgresql-{}-snowflake-pg_{VERSION}-1_{}.deb", major(), architecture);
            Packages {
                debian: dir.join(debian),
                archive: dir.join(format!("snowflake_pg-{VERSION}-pg{}-linux-{}.tar.gz", major(), machine)),
            }
        })
    }

    /// The contents of both packages, byte for byte.
    pub fn read(&self) -> [Vec<u8>; 2] {
        [&self.debian, &self.archive].map(|path| fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    }

    /// The files of the Debian package, without directories.
    pub fn debian_files(&self) -> Vec<String> {
        let listing = output(command("sh").args(["-c", "dpkg-deb --fsys-tarfile \"$0\" | tar -t"]).arg(&self.debian));
        let files = listing.lines().filter(|line| !line.ends_with('/'));
        files.map(|line| line.trim_start_matches("./").to_string()).collect()
    }

    /// The control fields of the Debian package.
    pub fn fields(&self) -> String {
        output(command("dpkg-deb").arg("--field").arg(&self.debian))
    }

    /// The output of tar for the archive: mode, owner, size, time and name.
    pub fn archive_listing(&self) -> String {
        output(command("tar").args(["--numeric-owner", "--utc", "-tvzf"]).arg(&self.archive))
    }

    /// Unpacks the Debian package, with its control directory, and returns the directory.
    pub fn unpack_debian(&self, scratch: &Scratch) -> PathBuf {
        let dir = scratch.0.join("debian");
        output(command("dpkg-deb").arg("--raw-extract").arg(&self.debian).arg(&dir));
        dir
    }

    /// Unpacks the archive and returns its only directory.
    pub fn unpack_archive(&self, scratch: &Scratch) -> PathBuf {
        output(command("tar").arg("-xzf").arg(&self.archive).arg("-C").arg(&scratch.0));
        let name = self.archive.file_name().expect("a file").to_string_lossy();
        scratch.0.join(name.trim_end_matches(".tar.gz"))
    }
}

/// The directory of the documentation in the Debian package.
pub fn docs() -> String {
    format!("usr/share/doc/postgresql-{}-snowflake-pg", major())
}

/// The library as the compiler left it.
pub fn unstripped() -> PathBuf {
    repository().join("target/release/libsnowflake_pg.so")
}

/// Runs `scripts/package`.
pub fn build() {
    output(command(repository().join("scripts/package")).env("PG", major()));
}

/// A text that all processes of a test run share, and that differs between runs.
fn run() -> String {
    let of = std::env::var("NEXTEST_RUN_ID").unwrap_or_else(|_| std::process::id().to_string());
    format!("{of} on {}", major())
}
