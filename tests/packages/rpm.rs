//! `make rpm` makes an rpm that contains what the Debian package contains, at the places that the PostgreSQL project's packages for
//! Fedora and RHEL use, and that needs the same libraries.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cluster::{Scratch, assert_caught, command, ensure, major, output, page, repository};

use crate::build::{Packages, VERSION, docs};
use crate::check;

/// Builds the rpm from the archive.
fn build() -> PathBuf {
    output(command(repository().join("scripts/rpm")).arg(&Packages::built().archive).env("PG", major()));
    let machine = output(command("uname").arg("-m"));
    repository().join(format!("target/packages/snowflake_pg_{}-{VERSION}-1.{machine}.rpm", major()))
}

/// The mode, the owner, the digest and the name of each file in the rpm, without directories.
fn files(rpm: &Path) -> Vec<String> {
    let format = "[%{FILEMODES:perms} %{FILEUSERNAME}:%{FILEGROUPNAME} %{FILEDIGESTS} %{FILENAMES}\\n]";
    let listing = output(command("rpm").args(["--query", "--package", "--queryformat", format]).arg(rpm));
    listing.lines().filter(|line| !line.starts_with('d')).map(String::from).collect()
}

/// The same of the files in the Debian package, with the names that they have in the rpm. The files of Debian's documentation are not
/// in the rpm, which has the licences instead.
fn wanted() -> Vec<String> {
    let scratch = Scratch::new("packages_rpm");
    let unpacked = Packages::built().unpack_debian(&scratch);
    let line = |path: PathBuf, name: String| {
        let mode = if name.ends_with(".so") { "-rwxr-xr-x" } else { "-rw-r--r--" };
        let digest = output(command("sha256sum").arg(path));
        format!("{mode} root:root {} {name}", digest.split(' ').next().expect("a digest"))
    };
    let shared = format!("usr/share/postgresql/{}", major());
    let places = [(format!("usr/lib/postgresql/{}", major()), ""), (shared.clone(), "/share")];
    let names = Packages::built().debian_files().into_iter().filter(|name| !name.starts_with(&docs()));
    let mut lines: Vec<String> = names
        .map(|name| {
            let inside = places.iter().find_map(|(debian, rpm)| Some(format!("{rpm}{}", name.strip_prefix(debian)?)));
            let inside = inside.unwrap_or_else(|| panic!("{name} has no place in the rpm"));
            line(unpacked.join(&name), format!("/usr/pgsql-{}{inside}", major()))
        })
        .collect();
    let licences = format!("/usr/share/licenses/snowflake_pg_{}", major());
    lines.push(line(repository().join("LICENSE"), format!("{licences}/LICENSE")));
    lines.push(line(unpacked.join(shared).join("snowflake_pg/NOTICES"), format!("{licences}/NOTICES")));
    lines
}

/// What the rpm requires.
fn requires(rpm: &Path) -> String {
    output(command("rpm").args(["--query", "--package", "--requires"]).arg(rpm))
}

/// Whether an rpm requires the server, and the libraries that the Debian package requires, each in a version that every system has.
fn check_requires(requires: &str, control: &str) -> Result<(), String> {
    let server = format!("postgresql{}-server", major());
    ensure!(requires.lines().any(|line| line == server), "it does not require {server}");
    let depends = control.lines().find_map(|line| line.strip_prefix("Depends: ")).ok_or("there is no field Depends")?;
    let packages = depends.split(", ").map(|package| package.split(' ').next().unwrap_or_default());
    let wanted: BTreeSet<&str> = packages.filter(|name| !name.starts_with("postgresql-")).collect();
    let libraries = requires.lines().filter_map(|line| line.split_once('(')).filter(|(name, _)| name.contains(".so"));
    let found: BTreeSet<&str> = libraries
        .map(|(library, _)| match library {
            "libpq.so.5" => "libpq5",
            "libgcc_s.so.1" => "libgcc-s1",
            "libc.so.6" | "libm.so.6" | "ld-linux-x86-64.so.2" | "ld-linux-aarch64.so.1" => "libc6",
            other => other,
        })
        .collect();
    ensure!(found == wanted, "it requires {found:?}, and the Debian package {wanted:?}");
    // A libpq with versions of symbols is RHEL's. That of the PostgreSQL project has none.
    let libpq = requires.lines().find(|line| line.starts_with("libpq.so.5(") && *line != "libpq.so.5()(64bit)");
    ensure!(libpq.is_none(), "it requires {}", libpq.unwrap_or_default());
    let versions = requires.lines().filter_map(|line| line.split_once("(GLIBC_")?.1.split_once(')'));
    let newest = versions.map(|(version, _)| version.split('.').map(str::parse::<u32>).collect::<Result<Vec<_>, _>>());
    let newest = newest.collect::<Result<BTreeSet<_>, _>>().map_err(|error| error.to_string())?;
    let newest = newest.last().ok_or("it requires no C library")?;
    let libc = newest.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
    ensure!(depends.contains(&format!("libc6 (>= {libc})")), "it requires C library {libc}, and not {depends}");
    Ok(())
}

#[test]
fn the_rpm_holds_and_requires_what_the_debian_package_does() {
    let rpm = build();
    let (files, wanted) = (files(&rpm), wanted());
    check::same(files.clone(), wanted.clone()).unwrap();
    let (requires, control) = (requires(&rpm), Packages::built().fields());
    check_requires(&requires, &control).unwrap();

    // Differences are noticed.
    let mut fewer = files.clone();
    let removed = fewer.remove(fewer.iter().position(|line| line.ends_with("snowflake_pg.so")).expect("the library"));
    assert_caught(check::same(fewer.clone(), wanted.clone()), "snowflake_pg.so");
    fewer.push(removed.replace("-rwxr-xr-x", "-rwxrwxrwx"));
    assert_caught(check::same(fewer, wanted.clone()), "-rwxrwxrwx");
    let more = [files, vec!["-rw-r--r-- root:root 0 /usr/bin/snowflake_pg".into()]].concat();
    assert_caught(check::same(more, wanted), "/usr/bin/snowflake_pg");
    let spoilt = |from: &str, to: &str| check_requires(&requires.replace(from, to), &control);
    assert_caught(spoilt("-server", "-libs"), "it does not require postgresql");
    assert_caught(spoilt("libpq.so.5()", "libpq.so.5(RHPG_9.6)"), "it requires libpq.so.5(RHPG_9.6)(64bit)");
    assert_caught(spoilt("libpq.so.5()(64bit)", "libssl.so.3()(64bit)"), "libssl.so.3");
    assert_caught(spoilt("GLIBC_2.34", "GLIBC_2.38"), "it requires C library 2.38");
}

#[test]
fn an_rpm_built_again_is_the_same() {
    let first = fs::read(build()).expect("just built");
    assert!(first == fs::read(build()).expect("just built"), "a second rpm differs from the first");
}

/// The description also builds from the sources, for every version of PostgreSQL, with the compiler that Cargo.toml names.
#[test]
fn the_spec_asks_for_the_compiler_and_the_version_of_cargo() {
    let spec = repository().join("packaging/snowflake_pg.spec");
    let query = |what: &str, options: &[&str]| {
        let version = format!("pgmajorversion {}", major());
        let mut rpmspec = command("rpmspec");
        rpmspec.args(["--query", "--define", &version, what]).args(options).arg(&spec);
        output(&mut rpmspec)
    };
    let needs = query("--buildrequires", &[]);
    let rust = concat!("rust >= ", env!("CARGO_PKG_RUST_VERSION"));
    for need in [rust, &format!("postgresql{}-devel", major())] {
        assert!(needs.lines().any(|line| line == need), "{needs}");
    }
    assert!(!query("--buildrequires", &["--with", "rustup"]).contains("rust"));
    assert_eq!(query("--buildrequires", &["--with", "prebuilt"]), "");
    let newest = page("packaging/snowflake_pg.spec");
    let newest = newest.split("%changelog\n* ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
    assert!(newest.ends_with(&format!(" - {VERSION}-1")), "the newest entry is {newest}");
}
