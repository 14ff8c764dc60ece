//! A Debian with PostgreSQL as its archive has it, and nothing else, in a directory. It runs in namespaces of its own, so
//! that what is started and mounted in it ends with it.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cluster::{Host, command, ensure, major, not_tested, output, repository, within};

/// The tree, removed when this goes out of scope.
pub struct Tree {
    root: PathBuf,
    /// The tree's first process is `cat`, which ends when this process does, and then all others of the tree do.
    holder: Child,
    first: u32,
}

/// True for the caller who needs no sudo.
pub fn is_root() -> bool {
    output(command("id").arg("-u")) == "0"
}

/// A command to be run as root.
fn as_root(program: &str) -> Command {
    if is_root() {
        return command(program);
    }
    let mut command = command("sudo");
    command.args(["-n", program]);
    command
}

impl Tree {
    /// A new one, in which no server runs. `None`, and a line that says why, where there can be none.
    pub fn fresh(name: &str) -> Option<Tree> {
        if !Host::get().installation().is_debians() || major() != "15" {
            not_tested(&format!("Debian 12 has no PostgreSQL {}", major()));
            return None;
        }
        if !as_root("true").output().is_ok_and(|output| output.status.success()) {
            not_tested("another root directory needs root, and sudo asks for a password");
            return None;
        }
        let root = directory().join(name);
        output(as_root("rm").arg("-rf").arg(&root));
        fs::create_dir_all(&root).expect("target/ can be written");
        output(as_root("tar").arg("-xf").arg(archive()).arg("-C").arg(&root));
        let (holder, first) = hold(&root)?;
        let tree = Tree { root, holder, first };
        let port = "listen_addresses = ''\n";
        tree.write(&format!("/etc/postgresql/{}/main/conf.d/no_port.conf", major()), port);
        // Nobody is there to press a key.
        tree.write("/etc/apt/apt.conf.d/90assume-yes", "APT::Get::Assume-Yes \"true\";\n");
        Some(tree)
    }

    /// What a shell of root's prints inside; an error is what it printed.
    pub fn run(&self, typed: &str) -> Result<String, String> {
        // Into a file: a server that is started would keep a pipe open.
        let path = self.root.with_extension("printed");
        let printed = File::create(&path).expect("target/ can be written");
        let first = self.first.to_string();
        let status = as_root("nsenter")
            .args(["--target", &first, "--mount", "--pid", "--root", "--wd", "env", "-i", "HOME=/root", "LC_ALL=C"])
            .args(["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "sh", "-e", "-c"])
            .arg(format!("cd\n{typed}"))
            .stdin(Stdio::null())
            .stdout(printed.try_clone().expect("a file handle"))
            .stderr(printed)
            .status()
            .expect("nsenter can be run");
        let printed = String::from_utf8_lossy(&fs::read(&path).expect("just written")).into_owned();
        ensure!(status.success(), "{typed}:\n{printed}");
        Ok(printed)
    }

    /// Writes a file inside.
    pub fn write(&self, path: &str, text: &str) {
        let outside = self.root.with_extension("written");
        fs::write(&outside, text).expect("target/ can be written");
        self.put(&outside, path);
    }

    /// Puts a copy of a file inside.
    pub fn put(&self, file: &Path, path: &str) {
        let inside = self.root.join(path.trim_start_matches('/'));
        output(as_root("install").args(["-m", "644"]).arg(file).arg(inside));
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
        let _ = as_root("rm").arg("-rf").arg(&self.root).status();
        for extension in ["printed", "written"] {
            let _ = fs::remove_file(self.root.with_extension(extension));
        }
    }
}

/// Where trees are, and what they are unpacked from.
fn directory() -> PathBuf {
    repository().join("target/debian")
}

/// The tree as it comes from the archive, kept from one run to the next.
fn archive() -> PathBuf {
    let release = fs::read_to_string("/etc/os-release").expect("a Debian tells which one it is");
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME=")).expect("a release has a name");
    fs::create_dir_all(directory()).expect("target/ can be written");
    let lock = File::create(directory().join("lock")).expect("target/ can be written");
    lock.lock().expect("a lock file can be locked");
    let kept = directory().join(format!("{suite}-pg{}.tar", major()));
    if !kept.exists() {
        let fresh = kept.with_extension("new");
        let server = format!("--include=postgresql-{}", major());
        let mut mmdebstrap = as_root("mmdebstrap");
        mmdebstrap.args(["--variant=minbase", "--format=tar", &server, suite]).arg(&fresh).stdin(Stdio::null());
        output(&mut mmdebstrap);
        fs::rename(&fresh, &kept).expect("a file can be renamed in place");
    }
    kept
}

/// Starts a process in namespaces of its own with this as its root directory; also returns that process's ID.
fn hold(root: &Path) -> Option<(Child, u32)> {
    let mut holder = as_root("unshare")
        .args(["--mount", "--pid", "--fork", "--kill-child"])
        .arg(format!("--mount-proc={}", root.join("proc").display()))
        .args(["sh", "-e", "-c", "mount -t tmpfs -o mode=1777 tmpfs \"$0/dev/shm\"; exec chroot \"$0\" cat"])
        .arg(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("unshare can be run");
    let mut first = None;
    let begun = within(Duration::from_secs(20), || {
        first = last_child(holder.id()).filter(|pid| comm(*pid) == "cat");
        first.is_some() || holder.try_wait().expect("a child can be waited for").is_some()
    });
    if let (true, Some(first)) = (begun, first) {
        return Some((holder, first));
    }
    drop(holder.stdin.take());
    let mut complaint = String::new();
    let _ = holder.stderr.take().expect("a pipe").read_to_string(&mut complaint);
    let _ = holder.wait();
    output(as_root("rm").arg("-rf").arg(root));
    not_tested(&format!("this machine gives root no namespaces: {complaint}"));
    None
}

/// The end of the line of children: sudo and unshare have one each.
fn last_child(parent: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    let Some(child) = children.split_whitespace().next() else { return Some(parent) };
    last_child(child.parse().ok()?)
}

/// The name of the program that a process runs.
fn comm(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_string()
}
