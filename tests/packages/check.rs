//! Checks of the packages, and of the files that describe them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cluster::{command, contributors_pages, ensure, files, major, output, page, repository, tool};
use pgxn_meta::dist::Distribution;
use serde_json::Value;

use crate::build::{VERSION, docs};

/// The control files and the scripts of both extensions: the scripts of this version, and those of earlier versions in `sql/`. Beside
/// them, the scripts of the portable functions.
pub fn extension_files() -> Vec<String> {
    let kept = files(&["sql"], ".sql").into_iter().map(|path| path.file_name().expect("a file").display().to_string());
    let mut files: Vec<String> = kept.filter(|name| name.starts_with("snowflake_pg--")).collect();
    for extension in ["snowflake_pg", "snowflake_registry"] {
        files.extend([format!("{extension}--{VERSION}.sql"), format!("{extension}.control")]);
    }
    files.extend(["snowflake_portable.sql", "snowflake_portable_tle.sql"].map(String::from));
    // The registries of clones that were made before the first release.
    files.push(format!("snowflake_registry--0.2.0-dev--{VERSION}.sql"));
    files.sort();
    files.dedup();
    files
}

/// The pages, the pictures, the files for Prometheus and Grafana, and the notices of the crates, below the directory of PostgreSQL's
/// shared files.
pub fn page_files() -> Vec<String> {
    let kept: Vec<PathBuf> = contributors_pages().iter().map(|page| Path::new("docs").join(page)).collect();
    let shipped = |folder: &str, kind: &str| -> Vec<String> {
        let found = files(&[folder], kind).into_iter();
        let found = found.filter(|path| path.parent() == Some(Path::new(folder)) && !kept.contains(path));
        found.map(|path| format!("snowflake_pg/{}", path.display())).collect()
    };
    let front = ["README.md", "CHANGELOG.md", "NOTICES"].map(|name| format!("snowflake_pg/{name}"));
    let monitoring = [".yml", ".json"].map(|kind| shipped("docs/monitoring", kind)).concat();
    [front.into(), shipped("docs", ".md"), shipped("docs/pictures", ".svg"), monitoring].concat()
}

/// Whether two lists of names are equal except for their order.
pub fn same(found: impl IntoIterator<Item = String>, mut wanted: Vec<String>) -> Result<(), String> {
    let mut found: Vec<String> = found.into_iter().collect();
    found.sort();
    wanted.sort();
    let lacking: Vec<&String> = wanted.iter().filter(|name| !found.contains(name)).collect();
    let beyond: Vec<&String> = found.iter().filter(|name| !wanted.contains(name)).collect();
    ensure!(lacking.is_empty() && beyond.is_empty(), "lacking: {lacking:?}, beyond: {beyond:?}");
    Ok(())
}

/// Whether the files of the Debian package are in Debian's directories.
pub fn debian_files(files: &[String]) -> Result<(), String> {
    let major = major();
    let docs = format!("{}/", docs());
    let mut wanted = vec![format!("usr/lib/postgresql/{major}/lib/snowflake_pg.so")];
    wanted.extend(extension_files().iter().map(|name| format!("usr/share/postgresql/{major}/extension/{name}")));
    wanted.extend(page_files().iter().map(|name| format!("usr/share/postgresql/{major}/{name}")));
    let (read, used): (Vec<String>, Vec<String>) = files.iter().cloned().partition(|file| file.starts_with(&docs));
    same(used, wanted)?;
    for name in ["README.Debian", "changelog.Debian.gz", "changelog.gz", "copyright"] {
        ensure!(read.contains(&format!("{docs}{name}")), "{name} is not in the package");
    }
    Ok(())
}

/// Whether the archive has its files, in order, and does not record by whom and when it was built.
pub fn archive_files(listing: &str) -> Result<(), String> {
    let mut names: Vec<&str> = Vec::new();
    let mut times: Vec<String> = Vec::new();
    for line in listing.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [mode, owner, _, day, time, name] = fields[..] else { return Err(format!("not understood: {line}")) };
        ensure!(owner == "0/0", "{name} belongs to {owner}");
        let executable = name.ends_with('/') || name.ends_with(".so");
        let wanted = if executable { "rwxr-xr-x" } else { "rw-r--r--" };
        ensure!(&mode[1..] == wanted, "the mode of {name} is {mode}");
        names.push(name);
        times.push(format!("{day} {time}"));
    }
    times.dedup();
    ensure!(times.len() == 1, "files are of {times:?}");
    // In tar's order, a directory comes before its contents.
    let parts = |name: &&str| name.split('/').map(String::from).collect::<Vec<_>>();
    ensure!(names.is_sorted_by_key(parts), "the names are not in order: {names:?}");
    let root = names.first().copied().unwrap_or_default();
    let wanted = format!("snowflake_pg-{VERSION}-pg{}-linux-", major());
    ensure!(root.starts_with(&wanted) && root.ends_with('/'), "the first name is {root:?}");
    let mut wanted: Vec<String> = ["INSTALL", "LICENSE", "README.md", "lib/snowflake_pg.so"].map(String::from).into();
    wanted.extend(extension_files().iter().map(|name| format!("share/extension/{name}")));
    wanted.extend(page_files().iter().map(|name| format!("share/{name}")));
    same(names.iter().filter(|name| !name.ends_with('/')).map(|name| name.trim_start_matches(root).to_string()), wanted)
}

/// Whether the control fields are correct, and the page names the version of the C library that they require.
pub fn fields(control: &str) -> Result<(), String> {
    let field = |name: &str| {
        let prefix = format!("{name}: ");
        control.lines().find_map(|line| line.strip_prefix(&prefix)).ok_or(format!("there is no field {name}"))
    };
    let version = field("Version")?;
    ensure!(version == format!("{VERSION}-1"), "the version is {version}");
    let name = field("Package")?;
    ensure!(name == format!("postgresql-{}-snowflake-pg", major()), "the package is called {name}");
    let architecture = output(command("dpkg").arg("--print-architecture"));
    ensure!(field("Architecture")? == architecture, "it is for {}", field("Architecture")?);
    let depends: Vec<&str> = field("Depends")?.split(", ").collect();
    ensure!(depends.contains(&format!("postgresql-{}", major()).as_str()), "it depends on {depends:?}");
    let has_libpq = depends.iter().any(|name| name.starts_with("libpq5 (>= "));
    ensure!(has_libpq, "it depends on no PostgreSQL client library: {depends:?}");
    let libc = depends.iter().find_map(|name| name.strip_prefix("libc6 (>= ")?.strip_suffix(')'));
    let libc = libc.ok_or(format!("it depends on no C library: {depends:?}"))?;
    let promise = "version 2.34 or later of the C library";
    let text = page("docs/installing.md").replace('\n', " ");
    ensure!(text.contains(promise), "the page does not say that {promise}");
    ensure!(promise.contains(&format!(" {libc} ")), "it asks for C library {libc}, and the page says 2.34");
    Ok(())
}

/// Whether a library has no symbols that only debuggers read.
pub fn stripped(library: &Path) -> Result<(), String> {
    let sections = output(command("readelf").args(["--sections", "--wide"]).arg(library));
    ensure!(!sections.contains(".symtab"), "{} is not stripped", library.display());
    ensure!(sections.contains(".dynsym"), "{} is no library", library.display());
    Ok(())
}

/// Whether the page states the size of the library.
pub fn page_size(bytes: u64) -> Result<(), String> {
    let text = page("docs/installing.md").replace('\n', " ");
    let stated = text.split("library takes ").nth(1).and_then(|rest| rest.split(" MB").next()?.parse::<f64>().ok());
    let stated = stated.ok_or("the page does not say how large the library is")?;
    let found = bytes as f64 / 1e6;
    // The size differs slightly between versions of PostgreSQL.
    ensure!((found - stated).abs() <= 0.1, "the library takes {found} MB, and the page says {stated} MB");
    Ok(())
}

/// Whether lintian reports nothing.
pub fn lintian(package: &Path) -> Result<(), String> {
    let output = tool("lintian").arg("--allow-root").arg(package).output().expect("lintian can be run");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(said.is_empty(), "lintian says:\n{said}");
    ensure!(output.status.success(), "lintian ends with {}", output.status);
    Ok(())
}

/// Whether PGXN would accept this META.json by its own rules, and the files that it names exist.
pub fn meta(text: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let provided = value["provides"].as_object().ok_or("it provides nothing")?.values();
    let files = provided.flat_map(|extension| ["file", "docfile"].map(|name| extension[name].as_str()));
    let files: Vec<_> = files.collect::<Option<_>>().ok_or("an extension without a file or a page")?;
    let sql = |file: &&&str| file.ends_with(".sql");
    ensure!(files.iter().filter(sql).count() == 2, "it provides {files:?}");
    Distribution::try_from(value.clone()).map_err(|e| e.to_string())?;
    let absent = files.iter().find(|file| !repository().join(file).exists());
    ensure!(absent.is_none(), "there is no {absent:?}");
    Ok(())
}

/// Runs a checker on a text. Anything it prints is an error.
fn said_of(text: &str, mut checker: Command) -> Result<(), String> {
    let checker = checker.current_dir(repository().join("scripts")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = checker.stderr(Stdio::piped()).spawn().expect("it has told its version");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(output.status.success() && said.is_empty(), "{checker:?} says:\n{said}");
    Ok(())
}

/// Whether hadolint reports nothing.
pub fn dockerfile(text: &str) -> Result<(), String> {
    let mut hadolint = tool("hadolint");
    hadolint.args(["--no-color", "-"]);
    said_of(text, hadolint)
}

/// Whether actionlint reports nothing. It also passes the commands of the workflow to shellcheck.
pub fn workflow(text: &str) -> Result<(), String> {
    let mut actionlint = tool("actionlint");
    actionlint.arg("-shellcheck").arg(tool("shellcheck").get_program()).args(["-no-color", "-pyflakes=", "-"]);
    said_of(text, actionlint)?;
    // A tag could be moved to another commit.
    let pinned = |action: &str| {
        let (commit, version) = action.split_once('@')?.1.split_once(" # v")?;
        (commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()) && !version.is_empty()).then_some(())
    };
    let mut actions = text.lines().filter_map(|line| line.trim().strip_prefix("uses: "));
    let loose = actions.find(|action| pinned(action).is_none());
    ensure!(loose.is_none(), "{} is not pinned by a commit", loose.unwrap_or_default());
    Ok(())
}

/// True for a script of sh or bash.
pub fn is_script(text: &str) -> bool {
    ["#!/bin/sh\n", "#!/usr/bin/env bash\n"].iter().any(|first| text.starts_with(first))
}

/// Whether shellcheck reports nothing.
pub fn script(name: &str, text: &str) -> Result<(), String> {
    let mut shellcheck = tool("shellcheck");
    let shell = if text.starts_with("#!/bin/sh\n") { "--shell=sh" } else { "--shell=bash" };
    // Variables can be set in one script and used in another, and shellcheck does not see those that a trap uses.
    shellcheck.args([shell, "--color=never", "--external-sources", "--exclude=SC1091,SC2034,SC2154", "-"]);
    said_of(text, shellcheck).map_err(|said| format!("{name}: {said}"))
}

/// Whether the newest entries have the version of the workspace, so that no release was forgotten.
pub fn versions(changes: &str, debian: &str, meta: &str, spec: &str) -> Result<(), String> {
    let newest = changes.lines().find_map(|line| line.strip_prefix("## ")?.split(' ').next()).unwrap_or_default();
    ensure!(newest == VERSION, "the newest version of CHANGELOG.md is {newest:?}, and that of Cargo.toml {VERSION}");
    let newest = debian.lines().next().unwrap_or_default();
    ensure!(newest.starts_with(&format!("snowflake-pg ({VERSION}-1) ")), "debian/changelog begins with {newest:?}");
    let packaged = spec.lines().find_map(|line| line.strip_prefix("Version:")).unwrap_or_default().trim();
    ensure!(packaged == VERSION, "the version of the spec is {packaged:?}, and that of Cargo.toml {VERSION}");
    let meta: Value = serde_json::from_str(meta).map_err(|e| e.to_string())?;
    let provided = ["snowflake_pg", "snowflake_registry"].map(|name| &meta["provides"][name]["version"]);
    for version in [&meta["version"]].into_iter().chain(provided) {
        ensure!(version == VERSION, "a version of META.json is {version}, and that of Cargo.toml {VERSION}");
    }
    Ok(())
}
