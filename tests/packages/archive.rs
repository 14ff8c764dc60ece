//! Installs the archive in a copy of the PostgreSQL installation, whose programs find all files relative to their own directory.

use std::fs;
use std::path::{Path, PathBuf};

use cluster::{Cluster, Host, Scratch, command, ensure, major, not_tested, output};

use crate::page::{pg, typed};

/// An installation without the extension, removed when this goes out of scope.
pub struct Copy {
    name: String,
    scratch: Scratch,
    bin: PathBuf,
}

impl Copy {
    /// Returns `None`, and prints why, for an installation whose parts are not known.
    pub fn new(name: &str) -> Option<Copy> {
        let postgresql = Host::get().installation();
        let whole: Vec<PathBuf> = if postgresql.is_debians() {
            ["lib", "share"].map(|part| format!("/usr/{part}/postgresql/{}", major()).into()).into()
        } else if std::env::var_os("PG_CONFIG").is_none_or(|named| named.is_empty()) {
            // The libraries of the programs are in a directory beside the package.
            vec![postgresql.bin.ancestors().nth(3).expect("scripts/setup has unpacked it").into()]
        } else {
            not_tested("the PostgreSQL of PG_CONFIG is not copied");
            return None;
        };
        let scratch = Scratch::new(&format!("packages_{name}"));
        let inside = |path: &Path| scratch.0.join(path.strip_prefix("/").expect("an absolute path"));
        for part in whole {
            let target = inside(&part);
            fs::create_dir_all(target.parent().expect("a path")).expect("a new directory can be written");
            output(command("cp").args(["--archive", "--no-target-directory"]).arg(&part).arg(target));
        }
        for dir in [&postgresql.libraries, &postgresql.extensions] {
            let files = fs::read_dir(inside(dir)).expect("just copied").map(|entry| entry.unwrap().path());
            let is_ours = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("snowflake_pg");
            files.filter(is_ours).for_each(|path| fs::remove_file(path).expect("the copy can be written"));
        }
        let bin = inside(&postgresql.bin);
        Some(Copy { name: name.into(), scratch, bin })
    }

    /// Installs the archive as the page says, and checks that its INSTALL says the same.
    pub fn install(&self, archive: &Path) -> Result<(), String> {
        output(command("cp").arg(archive).arg(&self.scratch.0));
        let path = format!("{}:{}", self.bin.display(), std::env::var("PATH").unwrap_or_default());
        let commands = typed("sh archive").concat();
        output(command("sh").args(["-e", "-c", &commands]).current_dir(&self.scratch.0).env("PATH", path));
        let unpacked = archive.file_name().expect("a file").to_string_lossy().replace(".tar.gz", "");
        let install = fs::read_to_string(self.scratch.0.join(unpacked).join("INSTALL")).map_err(|e| e.to_string())?;
        for line in commands.lines().filter(|line| line.starts_with("install ")) {
            ensure!(install.contains(&format!("    {line}\n")), "INSTALL does not say {line}");
        }
        let title = install.lines().next().unwrap_or_default();
        ensure!(title.ends_with(&format!("for PostgreSQL {}", pg().replace("pg", ""))), "INSTALL begins with {title}");
        Ok(())
    }

    /// Starts a server of the copy with these settings. On failure, returns its log.
    pub fn start(&self, settings: &str) -> Result<Cluster, String> {
        let mut builder =
            Cluster::builder(&self.name).unset("shared_preload_libraries").unset("snowflake_pg.worker_id");
        for (name, value) in cluster::settings(settings) {
            builder = builder.set(name, value);
        }
        let mut server = builder.create();
        let mut shell = Host::get().command(Path::new("sh"));
        shell.args(["-c", "exec \"$0\" -D \"$1\""]).arg(self.bin.join("postgres")).arg(server.dir());
        server.try_start_by(shell)?;
        Ok(server)
    }
}
