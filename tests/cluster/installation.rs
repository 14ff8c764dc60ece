//! The PostgreSQL installations of this machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::host::{Owner, repository};
use crate::{major, output};

/// The programs and libraries of one major version.
pub struct Installation {
    /// Its programs.
    pub bin: PathBuf,
    /// Its libraries, `snowflake_pg.so` among them.
    pub libraries: PathBuf,
    /// The control files and scripts of extensions.
    pub extensions: PathBuf,
    pgxs: PathBuf,
}

/// The version whose `pg_regress` stands in where one comes without, or with a broken one: it only runs `psql`.
const REGRESS: &str = "15";

impl Installation {
    /// The one that is tested: what `PG_CONFIG` of the environment names, else that of [`major`].
    pub(crate) fn tested(owner: Option<Owner>, base: &Path) -> Installation {
        let named = std::env::var_os("PG_CONFIG").filter(|named| !named.is_empty());
        named.map_or_else(
            || Installation::of_major(&major(), owner, base),
            |named| Installation::of(Path::new(&named), &major(), owner, base),
        )
    }

    /// The one of a major version, of Debian's packages or below `target/`.
    pub(crate) fn of_major(major: &str, owner: Option<Owner>, base: &Path) -> Installation {
        Installation::of(&pg_config(major), major, owner, base)
    }

    /// The one of this `pg_config`; a copy where the servers' user cannot enter its directory.
    fn of(pg_config: &Path, major: &str, owner: Option<Owner>, base: &Path) -> Installation {
        let found = Installation::ask(pg_config);
        if owner.is_none_or(|owner| owner.reaches(&found.bin)) {
            return found;
        }
        // PostgreSQL finds all that belongs to it from where its programs lie.
        let unpacked = unpacked(major);
        let whole =
            if found.bin.starts_with(&unpacked) { &unpacked } else { found.bin.parent().expect("bin/ lies somewhere") };
        let copy = base.join(format!("postgresql-{major}"));
        let lock = File::create(base.join("postgresql.lock")).expect("the base directory can be written");
        // Tests run as several processes; the lock ends with the file.
        lock.lock().expect("a lock file can be locked");
        // A file that was not copied to its end is not older than its source: begin anew.
        let begun = copy.with_extension("begun");
        if begun.exists() {
            fs::remove_dir_all(&copy).expect("the base directory can be written");
        }
        File::create(&begun).expect("the base directory can be written");
        // Not written into: a server that outlives its test may have the file open.
        let flags = ["--archive", "--update", "--remove-destination", "--no-target-directory"];
        let copied = Command::new("cp").args(flags).arg(whole).arg(&copy).status();
        assert!(copied.is_ok_and(|status| status.success()), "cannot copy {}", whole.display());
        fs::remove_file(begun).expect("it was just made");
        let bin = found.bin.strip_prefix(whole).expect("it lies there");
        Installation::ask(&copy.join(bin).join("pg_config"))
    }

    fn ask(pg_config: &Path) -> Installation {
        let ask = |what: &str| PathBuf::from(output(Command::new(pg_config).arg(what)));
        Installation {
            bin: ask("--bindir"),
            libraries: ask("--pkglibdir"),
            extensions: ask("--sharedir").join("extension"),
            pgxs: ask("--pgxs"),
        }
    }

    /// Its `pg_regress`, or another version's.
    pub(crate) fn regress(&self) -> PathBuf {
        let runs = |pgxs: PathBuf| {
            let top = pgxs.parent().and_then(Path::parent).expect("a file two deep");
            let regress = top.join("test/regress/pg_regress");
            let version = Command::new(&regress).arg("--version").output();
            version.is_ok_and(|output| output.status.success()).then_some(regress)
        };
        let other = || runs(output(Command::new(pg_config(REGRESS)).arg("--pgxs")).into());
        runs(self.pgxs.clone()).or_else(other).expect("scripts/setup has installed one")
    }

    /// True for the one of Debian's packages, which `scripts/setup` sees to: what tests need of other packages is there.
    pub fn is_debians(&self) -> bool {
        self.bin.starts_with("/usr/lib/postgresql")
    }
}

/// Where `scripts/setup` puts what Debian does not have.
fn unpacked(major: &str) -> PathBuf {
    repository().join("target/postgresql").join(major)
}

/// Where `scripts/common.sh` finds it, too.
fn pg_config(major: &str) -> PathBuf {
    let debians = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin/pg_config"));
    if debians.exists() {
        return debians;
    }
    let within = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut candidates = within(unpacked(major)).flat_map(within).map(|prefix| prefix.join("bin/pg_config"));
    // Some packages bring more versions than one.
    let says = format!("PostgreSQL {major}.");
    let right = |path: &PathBuf| {
        let version = Command::new(path).arg("--version").output();
        version.is_ok_and(|output| output.stdout.starts_with(says.as_bytes()))
    };
    candidates.find(right).unwrap_or_else(|| "pg_config".into())
}
