//! `scripts/package`, run once, and what came out.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cluster::{Scratch, major, output, repository};

/// The version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The packages below `target/packages`.
pub struct Packages {
    pub debian: PathBuf,
    pub archive: PathBuf,
}

impl Packages {
    /// Built when a test first asks.
    pub fn built() -> &'static Packages {
        static PACKAGES: OnceLock<Packages> = OnceLock::new();
        PACKAGES.get_or_init(|| {
            build();
            let dir = repository().join("target/packages");
            let architecture = output(Command::new("dpkg").arg("--print-architecture"));
            let machine = output(Command::new("uname").arg("-m"));
            let debian = format!("postgresql-{}-snowflake-pg_{VERSION}-1_{}.deb", major(), architecture);
            Packages {
                debian: dir.join(debian),
                archive: dir.join(format!("snowflake_pg-{VERSION}-pg{}-linux-{}.tar.gz", major(), machine)),
            }
        })
    }

    /// Both, byte for byte.
    pub fn read(&self) -> [Vec<u8>; 2] {
        [&self.debian, &self.archive].map(|path| fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    }

    /// The files of the Debian package, without directories.
    pub fn debian_files(&self) -> Vec<String> {
        let listing =
            output(Command::new("sh").args(["-c", "dpkg-deb --fsys-tarfile \"$0\" | tar -t"]).arg(&self.debian));
        let files = listing.lines().filter(|line| !line.ends_with('/'));
        files.map(|line| line.trim_start_matches("./").to_string()).collect()
    }

    /// The control fields of the Debian package.
    pub fn fields(&self) -> String {
        output(Command::new("dpkg-deb").arg("--field").arg(&self.debian))
    }

    /// What tar tells of the archive: mode, owner, size, time and name.
    pub fn archive_listing(&self) -> String {
        output(Command::new("tar").args(["--numeric-owner", "--utc", "-tvzf"]).arg(&self.archive))
    }

    /// The files of the Debian package and its control directory in a directory.
    pub fn unpack_debian(&self, scratch: &Scratch) -> PathBuf {
        let dir = scratch.0.join("debian");
        output(Command::new("dpkg-deb").arg("--raw-extract").arg(&self.debian).arg(&dir));
        dir
    }

    /// The archive's one directory.
    pub fn unpack_archive(&self, scratch: &Scratch) -> PathBuf {
        output(Command::new("tar").arg("-xzf").arg(&self.archive).arg("-C").arg(&scratch.0));
        let name = self.archive.file_name().expect("a file").to_string_lossy();
        scratch.0.join(name.trim_end_matches(".tar.gz"))
    }
}

/// Where the Debian package has its documentation.
pub fn docs() -> String {
    format!("usr/share/doc/postgresql-{}-snowflake-pg", major())
}

/// The library as the compiler left it.
pub fn unstripped() -> PathBuf {
    repository().join("target/release/libsnowflake_pg.so")
}

/// Runs `scripts/package`.
pub fn build() {
    let _alone = alone();
    output(Command::new(repository().join("scripts/package")).env("PG", major()));
}

/// Held while the repository is built in: one directory takes what all builds make.
pub fn alone() -> MutexGuard<'static, ()> {
    static BUILDING: Mutex<()> = Mutex::new(());
    BUILDING.lock().unwrap_or_else(PoisonError::into_inner)
}
