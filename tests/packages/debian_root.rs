//! A directory with a Debian that has PostgreSQL from Debian's archive and nothing else. It runs in its own namespaces, so that
//! its processes and mounts end with it.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cluster::{Host, command, ensure, major, not_tested, output, repository, within};

/// The tree, removed when this goes out of scope.
pub struct Tree {
    root: PathBuf,
    /// The first process of the tree is `cat`. It ends when this process does, and then all other processes of the tree end.
    holder: Child,
    first: u32,
}

/// True if the caller needs no sudo.
pub fn is_root() -> bool {
    output(command("id").arg("-u")) == "0"
}

/// A command that runs as root.
fn as_root(program: &str) -> Command {
    if is_root() {
        return command(program);
    }
    let mut command = command("sudo");
    command.args(["-n", program]);
    command
}

impl Tree {
    /// A new tree, in which no server runs. Returns `None`, and prints why, if none can be made.
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
        // Commands run without a user who could confirm them.
        tree.write("/etc/apt/apt.conf.d/90assume-yes", "APT::Get::Assume-Yes \"true\";\n");
        Some(tree)
    }

    /// The output of a root shell in the tree, also as the error.
    pub fn run(&self, typed: &str) -> Result<String, String> {
        // The output goes into a file, because a server that is started would keep a pipe open.
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

    /// Writes a file in the tree.
    pub fn write(&self, path: &str, text: &str) {
        let outside = self.root.with_extension("written");
        fs::write(&outside, text).expect("target/ can be written");
        self.put(&outside, path);
    }

    /// Puts a copy of a file into the tree.
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

/// The directory of the trees and of the file from which they are unpacked.
fn directory() -> PathBuf {
    repository().join("target/debian")
}

/// The tree from Debian's archive, kept from one run to the next.
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

/// Starts a process in its own namespaces with this root directory. Also returns the process ID.
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

/// The last process in the line of children: sudo and unshare have one child each.
fn last_child(parent: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    let Some(child) = children.split_whitespace().next() else { return Some(parent) };
    last_child(child.parse().ok()?)
}

/// The name of the program that a process runs.
fn comm(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_string()
}
