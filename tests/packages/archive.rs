//! Installs the archive in a copy of the PostgreSQL installation, whose programs find all files relative to their own directory.

use std::fs;
use std::path::{Path, PathBuf};

use cluster::{
    Answer, Client, Cluster, Host, Scratch, command, ensure, major, not_tested, output, postmaster_pid, sqlstate,
};

use crate::page::{pg, typed};

/// An installation without the extension, removed when this goes out of scope.
pub struct Copy {
    name: String,
    scratch: Scratch,
    bin: PathBuf,
    extensions: PathBuf,
    libraries: PathBuf,
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
            let is_ours = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("snowflake_");
            files.filter(is_ours).for_each(|path| fs::remove_file(path).expect("the copy can be written"));
        }
        let shared = postgresql.extensions.parent().expect("a directory above");
        let _ = fs::remove_dir_all(inside(&shared.join("snowflake_pg")));
        let [bin, extensions, libraries] =
            [&postgresql.bin, &postgresql.extensions, &postgresql.libraries].map(|dir| inside(dir));
        Some(Copy { name: name.into(), scratch, bin, extensions, libraries })
    }

    /// The directory of the programs.
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// The directory of the control files and scripts of extensions.
    pub fn extensions(&self) -> &Path {
        &self.extensions
    }

    /// Installs the archive as the page says, and checks that its INSTALL says the same.
    pub fn install(&self, archive: &Path) -> Result<(), String> {
        let commands = self.run(archive, "sh archive");
        let unpacked = archive.file_name().expect("a file").to_string_lossy().replace(".tar.gz", "");
        let install = fs::read_to_string(self.scratch.0.join(unpacked).join("INSTALL")).map_err(|e| e.to_string())?;
        for line in commands.lines().filter(|line| ["install ", "cp "].iter().any(|begin| line.starts_with(begin))) {
            ensure!(install.contains(&format!("    {line}\n")), "INSTALL does not say {line}");
        }
        let read = output(command("sh").args(["-e", "-c", &typed("sh pages").concat()]).env("PATH", self.path()));
        ensure!(read.contains("\n## After a restore\n"), "the page is not installed: {read}");
        let title = install.lines().next().unwrap_or_default();
        ensure!(title.ends_with(&format!("for PostgreSQL {}", pg().replace("pg", ""))), "INSTALL begins with {title}");
        Ok(())
    }

    /// Installs only the registry's files as the page says, and returns the names of all files of the extension.
    pub fn install_registry(&self, archive: &Path) -> Vec<String> {
        self.run(archive, "sh registry");
        let files = [&self.extensions, &self.libraries].map(|dir| fs::read_dir(dir).expect("just copied"));
        let names = files.into_iter().flatten().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("snowflake_")).collect();
        names.sort();
        names
    }

    /// Runs the page's commands of a kind beside the archive, and returns the commands.
    fn run(&self, archive: &Path, kind: &str) -> String {
        output(command("cp").arg(archive).arg(&self.scratch.0));
        let commands = typed(kind).concat();
        output(command("sh").args(["-e", "-c", &commands]).current_dir(&self.scratch.0).env("PATH", self.path()));
        commands
    }

    /// The search path with the programs of the copy before others.
    fn path(&self) -> String {
        format!("{}:{}", self.bin.display(), std::env::var("PATH").unwrap_or_default())
    }

    /// Starts a server of the copy with these settings. On failure, returns its log.
    pub fn start(&self, settings: &str) -> Result<Cluster, String> {
        let mut builder =
            Cluster::builder(&self.name).unset("shared_preload_libraries").unset("snowflake_pg.worker_id");
        for (name, value) in cluster::settings(settings) {
            builder = builder.set(name, value);
        }
        let mut server = builder.create();
        self.start_again(&mut server)?;
        Ok(server)
    }

    /// Starts a server of the copy that was stopped. On failure, returns its log.
    pub fn start_again(&self, server: &mut Cluster) -> Result<(), String> {
        let mut shell = Host::get().command(Path::new("sh"));
        shell.args(["-c", "exec \"$0\" -D \"$1\""]).arg(self.bin.join("postgres")).arg(server.dir());
        server.try_start_by(shell)
    }

    /// The place of a libpq that belongs to the copy.
    pub fn own_libpq(&self) -> PathBuf {
        self.libraries.parent().expect("a directory of PostgreSQL").join("libpq.so.5")
    }

    /// Whether a server of the copy has loaded the copy's own libpq.
    pub fn check_own_libpq(&self, server: &Cluster) -> Result<(), String> {
        let loaded = libpq(server);
        ensure!(loaded == self.own_libpq(), "the server has loaded {}", loaded.display());
        Ok(())
    }
}

/// The libpq that the postmaster of a server has loaded.
pub fn libpq(server: &Cluster) -> PathBuf {
    let pid = postmaster_pid(server.dir()).expect("the server runs");
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("the server runs");
    let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    paths.find(|path| path.contains("/libpq.so.")).expect("the library needs it").into()
}

/// Whether a registry without a fleet takes a fleet, and assigns worker IDs to two servers.
pub fn check_registry(client: &mut Client) -> Result<(), String> {
    client.one::<String>("SELECT snowflake_registry.create_fleet('41:10:12')::text");
    check_claims(client)
}

/// Whether a registry assigns worker IDs to two servers.
pub fn check_claims(client: &mut Client) -> Result<(), String> {
    // A server sends these calls one after the other. The clock is far in the future, so that every start has passed.
    let claim = "SELECT concat_ws(' ', claimed.answer, claimed.worker)
        FROM snowflake_registry.hello(NULL, '41:10:12', 1288834974657) AS hello, snowflake_registry.claim(
            hello.fleet, '41:10:12', 1288834974657, 0, hello.nonce, hello.life, hello.nonce, 9000000000000000000, '12 h', NULL
        ) AS claimed";
    for worker in 0..2 {
        let row = client.query_one(claim, &[]).map_err(|error| sqlstate(&error).1)?;
        let answer: String = row.get(0);
        ensure!(answer == format!("claimed {worker}"), "the answer to claim {worker} is {answer}");
    }
    Ok(())
}
