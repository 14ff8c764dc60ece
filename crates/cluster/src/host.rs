//! This machine: the user who runs the servers, and the directory with the servers' data.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::patience::PATIENCE;
use crate::{Builder, Cluster, Installation, command, output, within};

/// The maximum length of the path of a socket directory: `sun_path` in `sockaddr_un` has 108 bytes, from which the terminator and
/// the length of `/.s.PGSQL.5432` are subtracted.
const SOCKET_DIR_MAX: usize = 108 - 1 - 14;

/// The PostgreSQL installation and the user who runs its servers.
pub struct Host {
    installation: Installation,
    owner: Option<Owner>,
    /// The directory with the files that several tests use: the template of all data directories, and the library with faults.
    base: PathBuf,
    /// The directory with the data directories. It may be in memory.
    clusters: PathBuf,
}

/// The unprivileged user who runs the servers if the caller is root. PostgreSQL refuses to run as root.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    uid: u32,
    gid: u32,
}

/// Returns the repository's root.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate lies two folders deep")
}

impl Host {
    /// Returns this machine, which is examined once in each process.
    pub fn get() -> &'static Host {
        static HOST: OnceLock<Host> = OnceLock::new();
        HOST.get_or_init(Host::find)
    }

    /// Returns the PostgreSQL installation that is tested.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// Returns the PostgreSQL installation of this major version.
    pub fn installation_of(&self, major: &str) -> Installation {
        Installation::of_major(major, self.owner, &self.base)
    }

    /// Returns a command that runs a program of the installation as the servers' user.
    pub fn program(&self, name: &str) -> Command {
        self.command(&self.installation.bin.join(name))
    }

    /// Returns a command that runs the installation's `pg_regress` as the servers' user.
    pub fn pg_regress(&self) -> Command {
        self.command(&self.installation.regress())
    }

    /// Returns a command that runs any program as the servers' user.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = command(program);
        // The servers' user can read this directory, but may be unable to read the caller's current directory.
        command.current_dir(&self.base).stdin(Stdio::null());
        if let Some(owner) = self.owner {
            command.uid(owner.uid).gid(owner.gid);
        }
        command
    }

    /// Reserves the name of a cluster until the returned file is closed. No other test can use this name, not even in a different
    /// process.
    pub(crate) fn claim(&self, name: &str) -> File {
        let locks = self.clusters.join("locks");
        make_dir(&locks);
        let lock = lock_file(&locks.join(name));
        assert!(within(PATIENCE, || lock.try_lock().is_ok()), "another test uses the name {name}");
        lock
    }

    /// Creates an empty directory with this name that the servers' user owns.
    pub fn fresh_dir(&self, name: &str) -> PathBuf {
        let dir = self.dir(name);
        self.make_empty(&dir);
        dir
    }

    /// Creates an empty directory with this name in an in-memory file system.
    pub(crate) fn memory_dir(&self, name: &str) -> PathBuf {
        let dir = Path::new("/dev/shm").join(format!("{}-{name}", private_name()));
        self.make_empty(&dir);
        dir
    }

    fn make_empty(&self, dir: &Path) {
        let _ = fs::remove_dir_all(dir);
        make_dir(dir);
        // PostgreSQL refuses a data directory that others can read.
        let closed = PermissionsExt::from_mode(0o700);
        fs::set_permissions(dir, closed).expect("the mode of a new directory can be set");
        self.own(dir);
    }

    /// Returns the directory with this name. The directory does not have to exist.
    pub fn dir(&self, name: &str) -> PathBuf {
        self.clusters.join(name)
    }

    /// Returns the directory of the socket of the server with this name. The socket directory is next to the data directory, not
    /// in it, because a base backup would copy it. If the path would be too long for a socket, the socket directory is in the
    /// temporary directory.
    pub fn socket_dir(&self, name: &str) -> PathBuf {
        let beside = self.dir(&format!("{name}.socket"));
        let socket = if beside.as_os_str().len() <= SOCKET_DIR_MAX {
            beside
        } else {
            std::env::temp_dir().join(format!("{}-{name}", private_name()))
        };
        make_dir(&socket);
        self.own(&socket);
        socket
    }

    /// Copies the contents of a directory, for example the data directory of a stopped server, into an existing directory.
    pub fn copy_dir(&self, from: &Path, to: &Path) {
        let copied = self.command(Path::new("cp")).arg("-a").arg(from.join(".")).arg(to).status();
        assert!(copied.is_ok_and(|status| status.success()), "cannot copy {}", from.display());
    }

    /// Writes a file that the servers' user owns.
    pub fn write(&self, path: &Path, text: &str) {
        fs::write(path, text).unwrap_or_else(|e| panic!("cannot write {}: {e}", path.display()));
        self.own(path);
    }

    /// Returns the directory of the library with faults. The servers' user can read this directory.
    pub fn faults(&self) -> &Path {
        static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
        DIRECTORY.get_or_init(|| {
            let built = repository().join("target/faults/libsnowflake_pg.so");
            assert!(built.exists(), "scripts/faults makes {}", built.display());
            let copy = self.copy_of(&built, "faults", "snowflake_pg.so");
            copy.parent().expect("a file in a directory").into()
        })
    }

    /// Copies a file into a directory with this name, unless the copy is as old as the file, and returns the path of the copy. The
    /// servers' user can read the copy.
    pub(crate) fn copy_of(&self, file: &Path, directory: &str, name: &str) -> PathBuf {
        let dir = self.base.join(directory);
        make_dir(&dir);
        self.own(&dir);
        let _alone = self.alone(directory);
        let copy = dir.join(name);
        let age = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
        let made_at = age(file).unwrap_or_else(|| panic!("{} cannot be read", file.display()));
        if age(&copy) != Some(made_at) {
            // The new file replaces the old file by a rename, because a process may have the old file open.
            let fresh = dir.join(format!("{name}.new"));
            fs::copy(file, &fresh).expect("the base directory can be written");
            self.own(&fresh);
            let stamped = File::options().write(true).open(&fresh).and_then(|file| file.set_modified(made_at));
            stamped.expect("the time of a new file can be set");
            fs::rename(&fresh, &copy).expect("a file can be renamed in place");
        }
        copy
    }

    /// Waits until no other process is creating the files with this name. Other processes then wait until the returned file is
    /// closed.
    pub fn alone(&self, name: &str) -> File {
        let lock = lock_file(&self.base.join(format!("{name}.lock")));
        lock.lock().expect("a lock file can be locked");
        lock
    }

    /// Returns the data directory of which every new cluster is a copy. Copying it takes much less time than `initdb`, which
    /// takes a second.
    pub fn template(&self) -> PathBuf {
        let version = output(command(self.installation.bin.join("postgres")).arg("--version"));
        let name: String = version.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let dir = self.base.join(format!("template-{name}"));
        let _alone = self.alone("template");
        if !dir.exists() {
            let fresh = self.base.join("template.new");
            self.make_empty(&fresh);
            self.initdb(&fresh);
            fs::rename(&fresh, &dir).expect("a directory can be renamed in place");
        }
        dir
    }

    /// Fills an empty directory with a new cluster.
    pub(crate) fn initdb(&self, dir: &Path) {
        let initdb = self
            .program("initdb")
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(dir)
            .output()
            .expect("initdb can be run");
        assert!(initdb.status.success(), "initdb failed: {}", String::from_utf8_lossy(&initdb.stderr));
    }

    fn find() -> Host {
        let owner = Owner::find();
        let base = match owner {
            None => repository().join("target/clusters"),
            Some(owner) => owner.base(),
        };
        make_dir(&base);
        let clusters = memory(owner).unwrap_or_else(|| base.clone());
        make_dir(&clusters);
        let host = Host { installation: Installation::tested(owner, &base), owner, base, clusters };
        host.own(&host.base);
        host.own(&host.clusters);
        host
    }

    fn own(&self, path: &Path) {
        if let Some(owner) = self.owner {
            std::os::unix::fs::chown(path, Some(owner.uid), Some(owner.gid)).expect("root can give files away");
        }
    }
}

impl Builder {
    /// Creates the cluster with `initdb`, which takes a second. Unlike the clusters that [`Builder::create`] returns, it has a system
    /// identifier of its own.
    pub fn create_anew(self) -> Cluster {
        let cluster = self.empty();
        Host::get().initdb(cluster.dir());
        cluster
    }
}

impl Owner {
    /// Returns the user `postgres` if the caller is root, otherwise `None`.
    fn find() -> Option<Owner> {
        if output(command("id").arg("-u")) != "0" {
            return None;
        }
        let number = |flag: &str| {
            let text = output(command("id").args([flag, "postgres"]));
            text.parse().expect("root needs a user named postgres to run servers as")
        };
        Some(Owner { uid: number("-u"), gid: number("-g") })
    }

    /// Returns true if this user can enter a directory.
    pub(crate) fn reaches(self, dir: &Path) -> bool {
        let reached = command("test").arg("-x").arg(dir).current_dir("/").uid(self.uid).gid(self.gid).status();
        reached.is_ok_and(|status| status.success())
    }

    /// Returns `target/clusters` if this user can enter it. Otherwise, for example if it is below a closed home directory,
    /// returns a directory in the temporary directory.
    fn base(self) -> PathBuf {
        let wanted = repository().join("target/clusters");
        make_dir(&wanted);
        if self.reaches(&wanted) {
            return wanted;
        }
        private_dir(&std::env::temp_dir(), Some(self))
    }
}

fn make_dir(dir: &Path) {
    fs::create_dir_all(dir).unwrap_or_else(|e| panic!("cannot create {}: {e}", dir.display()));
}

fn lock_file(path: &Path) -> File {
    File::create(path).unwrap_or_else(|e| panic!("cannot create {}: {e}", path.display()))
}

/// Returns a directory in memory, where creating a cluster takes a tenth of the time that it takes on a disk. Returns `None` if
/// there is little room or programs cannot be run from the directory. Also returns `None` outside of test runs, because other
/// programs leave servers running.
fn memory(owner: Option<Owner>) -> Option<PathBuf> {
    const MEMORY: &str = "/dev/shm";
    const ROOM_KB: u64 = 4 << 20;
    std::env::var_os("NEXTEST")?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let mount = mounts.lines().find(|line| line.split(' ').nth(1) == Some(MEMORY))?;
    let free = command("df").args(["-k", "--output=avail", MEMORY]).output().ok()?;
    let free: u64 = String::from_utf8_lossy(&free.stdout).lines().last()?.trim().parse().ok()?;
    let suits = mount.split(' ').nth(2) == Some("tmpfs") && !mount.contains("noexec") && free > ROOM_KB;
    suits.then(|| private_dir(Path::new(MEMORY), owner))
}

/// Creates a directory inside a directory that every user can write to. A directory or link that belongs to a different user must
/// not be filled or removed.
fn private_dir(parent: &Path, owner: Option<Owner>) -> PathBuf {
    let dir = parent.join(private_name());
    if let Ok(known) = fs::symlink_metadata(&dir) {
        let uid = owner.map_or_else(|| fs::metadata("/proc/self").expect("a Linux system").uid(), |owner| owner.uid);
        let ours = known.is_dir() && [0, uid].contains(&known.uid());
        assert!(ours, "{} belongs to another user", dir.display());
    }
    dir
}

/// Returns a temporary directory name that no other clone or caller uses.
fn private_name() -> String {
    let mut hasher = DefaultHasher::new();
    (repository(), output(command("id").arg("-u"))).hash(&mut hasher);
    format!("snowflake_pg-{:x}", hasher.finish())
}
