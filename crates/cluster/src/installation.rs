//! The PostgreSQL installations of this machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::host::{Owner, repository};
use crate::{command, major, output};

/// The programs and libraries of one major version.
pub struct Installation {
    /// The directory of the programs.
    pub bin: PathBuf,
    /// The directory of the libraries, which contains `snowflake_pg.so`.
    pub libraries: PathBuf,
    /// The directory of the control files and scripts of extensions.
    pub extensions: PathBuf,
    pgxs: PathBuf,
}

/// The version whose `pg_regress` is used if the tested version's `pg_regress` is missing or broken. Another version's program
/// works because it only runs `psql`.
const REGRESS: &str = "15";

impl Installation {
    /// Returns the installation that is tested. If the environment variable `PG_CONFIG` is set, this is the installation that it
    /// names; otherwise, it is the installation of the version that [`major`] returns.
    pub(crate) fn tested(owner: Option<Owner>, base: &Path) -> Installation {
        let named = std::env::var_os("PG_CONFIG").filter(|named| !named.is_empty());
        named.map_or_else(
            || Installation::of_major(&major(), owner, base),
            |named| Installation::of(Path::new(&named), &major(), owner, base),
        )
    }

    /// Returns the installation of a major version, from Debian's packages or below `target/`.
    pub(crate) fn of_major(major: &str, owner: Option<Owner>, base: &Path) -> Installation {
        Installation::of(&pg_config(major), major, owner, base)
    }

    /// Returns the installation of this `pg_config`, or a copy of the installation if the servers' user cannot enter its
    /// directory.
    fn of(pg_config: &Path, major: &str, owner: Option<Owner>, base: &Path) -> Installation {
        let found = Installation::ask(pg_config);
        if owner.is_none_or(|owner| owner.reaches(&found.bin)) {
            return found;
        }
        // PostgreSQL finds its files relative to the directory of its programs, so the whole installation is copied.
        let unpacked = unpacked(major);
        let whole =
            if found.bin.starts_with(&unpacked) { &unpacked } else { found.bin.parent().expect("bin/ lies somewhere") };
        let copy = base.join(format!("postgresql-{major}"));
        let lock = File::create(base.join("postgresql.lock")).expect("the base directory can be written");
        // Tests run in several processes, so they use a file lock. The lock is released when the file is closed.
        lock.lock().expect("a lock file can be locked");
        // If an earlier copy was interrupted, it is started again. Otherwise, `--update` would keep an incomplete file, because
        // this file is not older than its source.
        let begun = copy.with_extension("begun");
        if begun.exists() {
            fs::remove_dir_all(&copy).expect("the base directory can be written");
        }
        File::create(&begun).expect("the base directory can be written");
        // Existing files are replaced and not overwritten, because a server that outlives its test may have them open.
        let flags = ["--archive", "--update", "--remove-destination", "--no-target-directory"];
        let copied = command("cp").args(flags).arg(whole).arg(&copy).status();
        assert!(copied.is_ok_and(|status| status.success()), "cannot copy {}", whole.display());
        fs::remove_file(begun).expect("it was just made");
        let bin = found.bin.strip_prefix(whole).expect("it lies there");
        Installation::ask(&copy.join(bin).join("pg_config"))
    }

    fn ask(pg_config: &Path) -> Installation {
        let ask = |what: &str| PathBuf::from(output(command(pg_config).arg(what)));
        Installation {
            bin: ask("--bindir"),
            libraries: ask("--pkglibdir"),
            extensions: ask("--sharedir").join("extension"),
            pgxs: ask("--pgxs"),
        }
    }

    /// Returns the installation's `pg_regress`, or another version's `pg_regress`.
    pub(crate) fn regress(&self) -> PathBuf {
        let runs = |pgxs: PathBuf| {
            let top = pgxs.parent().and_then(Path::parent).expect("a file two deep");
            let regress = top.join("test/regress/pg_regress");
            let version = command(&regress).arg("--version").output();
            version.is_ok_and(|output| output.status.success()).then_some(regress)
        };
        let other = || runs(output(command(pg_config(REGRESS)).arg("--pgxs")).into());
        runs(self.pgxs.clone()).or_else(other).expect("scripts/setup has installed one")
    }

    /// Returns true for the installation from Debian's packages. For this installation, `scripts/setup` installs the other
    /// packages that tests need.
    pub fn is_debians(&self) -> bool {
        self.bin.starts_with("/usr/lib/postgresql")
    }
}

/// Returns the directory into which `scripts/setup` puts versions that Debian does not have.
fn unpacked(major: &str) -> PathBuf {
    repository().join("target/postgresql").join(major)
}

/// Returns the `pg_config` of a major version. `scripts/common.sh` finds it in the same way.
fn pg_config(major: &str) -> PathBuf {
    let debians = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin/pg_config"));
    if debians.exists() {
        return debians;
    }
    let within = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut candidates = within(unpacked(major)).flat_map(within).map(|prefix| prefix.join("bin/pg_config"));
    // Some packages contain more than one version.
    let says = format!("PostgreSQL {major}.");
    let right = |path: &PathBuf| {
        let version = command(path).arg("--version").output();
        version.is_ok_and(|output| output.stdout.starts_with(says.as_bytes()))
    };
    candidates.find(right).unwrap_or_else(|| "pg_config".into())
}
