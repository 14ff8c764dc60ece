//! This machine: who runs the servers, and where their data goes.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::{Installation, output};

/// Bytes of a Unix socket's path, less the terminator and `/.s.PGSQL.5432` (`sun_path` of `sockaddr_un` has 108).
const SOCKET_DIR_MAX: usize = 108 - 1 - 14;

/// The PostgreSQL installation and the user who runs its servers.
pub struct Host {
    installation: Installation,
    owner: Option<Owner>,
    base: PathBuf,
}

/// The unprivileged user that stands in for root, under which PostgreSQL refuses to run.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    uid: u32,
    gid: u32,
}

/// The repository's root.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository")
}

impl Host {
    /// This machine, looked at once.
    pub fn get() -> &'static Host {
        static HOST: OnceLock<Host> = OnceLock::new();
        HOST.get_or_init(Host::find)
    }

    /// The PostgreSQL that is tested.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// The PostgreSQL of another major version.
    pub fn installation_of(&self, major: &str) -> Installation {
        Installation::of_major(major, self.owner, &self.base)
    }

    /// A program of the installation, to be run as the servers' user.
    pub fn program(&self, name: &str) -> Command {
        self.command(&self.installation.bin.join(name))
    }

    /// `pg_regress` of the installation, to be run as the servers' user.
    pub fn pg_regress(&self) -> Command {
        self.command(&self.installation.regress())
    }

    /// Any program, to be run as the servers' user.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // A directory that the servers' user can read, unlike perhaps the caller's.
        command.current_dir(&self.base).stdin(Stdio::null());
        if let Some(owner) = self.owner {
            command.uid(owner.uid).gid(owner.gid);
        }
        command
    }

    /// An empty directory of this name that the servers' user owns.
    pub fn fresh_dir(&self, name: &str) -> PathBuf {
        let dir = self.base.join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap_or_else(|e| panic!("cannot create {}: {e}", dir.display()));
        // PostgreSQL refuses a data directory that others can read.
        let closed = PermissionsExt::from_mode(0o700);
        fs::set_permissions(&dir, closed).expect("the mode of a new directory can be set");
        self.own(&dir);
        dir
    }

    /// The directory of this name, which need not exist.
    pub fn dir(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// Where the server of this name puts its socket: beside its data, for a base backup would copy it; in the temporary
    /// directory when the path would be longer than a socket's may be.
    pub fn socket_dir(&self, name: &str) -> PathBuf {
        let beside = self.base.join(format!("{name}.socket"));
        let socket = if beside.as_os_str().len() <= SOCKET_DIR_MAX {
            beside
        } else {
            std::env::temp_dir().join(format!("{}-{name}", private_name()))
        };
        fs::create_dir_all(&socket).expect("a directory for the socket can be made");
        self.own(&socket);
        socket
    }

    /// Writes a file that the servers' user owns.
    pub fn write(&self, path: &Path, text: &str) {
        fs::write(path, text).unwrap_or_else(|e| panic!("cannot write {}: {e}", path.display()));
        self.own(path);
    }

    /// The directory of the library with faults, where the servers' user can read it.
    pub fn faults(&self) -> &Path {
        // Once a process: its tests run in threads.
        static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
        DIRECTORY.get_or_init(|| {
            let built = repository().join("target/faults/libsnowflake_pg.so");
            let library = fs::read(&built).unwrap_or_else(|e| panic!("scripts/faults makes {}: {e}", built.display()));
            let dir = self.base.join("faults");
            fs::create_dir_all(&dir).expect("the base directory can be written");
            self.own(&dir);
            // Renamed into place: another process's server may have the old one open.
            let fresh = dir.join(format!("{}.new", std::process::id()));
            fs::write(&fresh, library).expect("the base directory can be written");
            self.own(&fresh);
            fs::rename(&fresh, dir.join("snowflake_pg.so")).expect("a file can be renamed in place");
            dir
        })
    }

    /// The path of Debian's libfaketime.
    pub fn faketime(&self) -> String {
        let listed = output(Command::new("sh").args(["-c", "ls /usr/lib/*/faketime/libfaketime.so.1"]));
        listed.lines().next().expect("the package faketime is installed").to_string()
    }

    /// The data directory every cluster begins as a copy of: `initdb` takes a second, a copy much less.
    pub fn template(&self) -> PathBuf {
        let version = output(Command::new(self.installation.bin.join("postgres")).arg("--version"));
        let name: String = version.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let dir = self.base.join(format!("template-{name}"));
        let lock = File::create(self.base.join("template.lock")).expect("the base directory can be written");
        // Tests run as several processes; the lock ends with the file.
        lock.lock().expect("a lock file can be locked");
        if !dir.exists() {
            let fresh = self.fresh_dir("template.new");
            let initdb = self
                .program("initdb")
                .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"])
                .arg(&fresh)
                .output()
                .expect("initdb can be run");
            assert!(initdb.status.success(), "initdb failed: {}", String::from_utf8_lossy(&initdb.stderr));
            fs::rename(&fresh, &dir).expect("a directory can be renamed in place");
        }
        dir
    }

    fn find() -> Host {
        let owner = Owner::find();
        let base = match owner {
            None => repository().join("target/clusters"),
            Some(owner) => owner.base(),
        };
        fs::create_dir_all(&base).unwrap_or_else(|e| panic!("cannot create {}: {e}", base.display()));
        let host = Host { installation: Installation::tested(owner, &base), owner, base };
        host.own(&host.base);
        host
    }

    fn own(&self, path: &Path) {
        if let Some(owner) = self.owner {
            std::os::unix::fs::chown(path, Some(owner.uid), Some(owner.gid)).expect("root can give files away");
        }
    }
}

impl Owner {
    /// The user `postgres` when the caller is root, nobody else otherwise.
    fn find() -> Option<Owner> {
        if output(Command::new("id").arg("-u")) != "0" {
            return None;
        }
        let number = |flag: &str| {
            let text = output(Command::new("id").args([flag, "postgres"]));
            text.parse().expect("root needs a user named postgres to run servers as")
        };
        Some(Owner { uid: number("-u"), gid: number("-g") })
    }

    /// True where this user can enter a directory.
    pub(crate) fn reaches(self, dir: &Path) -> bool {
        let reached = Command::new("test").arg("-x").arg(dir).current_dir("/").uid(self.uid).gid(self.gid).status();
        reached.is_ok_and(|status| status.success())
    }

    /// `target/clusters` if this user can reach it, which it cannot below a closed home directory; else a directory in the
    /// temporary one.
    fn base(self) -> PathBuf {
        let wanted = repository().join("target/clusters");
        fs::create_dir_all(&wanted).unwrap_or_else(|e| panic!("cannot create {}: {e}", wanted.display()));
        if self.reaches(&wanted) {
            return wanted;
        }
        let base = std::env::temp_dir().join(private_name());
        // Everybody can write there: a directory or a link that somebody else put in place is not ours to fill or remove.
        if let Ok(known) = fs::symlink_metadata(&base) {
            let ours = known.is_dir() && [0, self.uid].contains(&known.uid());
            assert!(ours, "{} belongs to somebody else", base.display());
        }
        base
    }
}

/// A name for the temporary directory that no other clone or caller has.
fn private_name() -> String {
    let mut hasher = DefaultHasher::new();
    (repository(), output(Command::new("id").arg("-u"))).hash(&mut hasher);
    format!("snowflake_pg-{:x}", hasher.finish())
}
