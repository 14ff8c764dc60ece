//! `make package` makes a Debian package and an archive that contain the right files and work as docs/installing.md says: in a
//! Debian that has nothing but PostgreSQL, and in a copy of an installation.

use std::fs;

use cluster::{
    Answer, Host, Scratch, Stop, assert_caught, command, ensure, major, not_tested, output, page, repository, sqlstate,
    supported, texts_of, thorough,
};

use crate::build::{Packages, VERSION};
use crate::debian_root::{self, Tree};
use crate::page::{LOOK, ORDERS, seen, settings, typed};
use crate::{archive, build, check, debian};

#[test]
fn both_packages_hold_what_they_should() {
    let packages = Packages::built();
    check::debian_files(&packages.debian_files()).unwrap();
    check::archive_files(&packages.archive_listing()).unwrap();
    check::fields(&packages.fields()).unwrap();

    let scratch = Scratch::new("packages_contents");
    let (unpacked, archive) = (packages.unpack_debian(&scratch), packages.unpack_archive(&scratch));
    let library = unpacked.join("usr/lib/postgresql").join(major()).join("lib/snowflake_pg.so");
    check::stripped(&library).unwrap();
    check::page_size(fs::metadata(&library).unwrap().len()).unwrap();
    let same = |a, b| assert!(fs::read(&a).unwrap() == fs::read(&b).unwrap(), "{a:?} and {b:?} differ");
    same(library, archive.join("lib/snowflake_pg.so"));
    let extension = unpacked.join("usr/share/postgresql").join(major()).join("extension");
    for entry in fs::read_dir(extension).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_os_string();
        same(path, archive.join("share/extension").join(name));
    }
    // All ways to install give the same settings.
    let install = fs::read_to_string(archive.join("INSTALL")).unwrap();
    let readme = fs::read_to_string(unpacked.join(build::docs()).join("README.Debian")).unwrap();
    for (name, text) in [("INSTALL", install), ("README.Debian", readme)] {
        for line in settings().lines() {
            assert!(text.contains(&format!("    {line}\n")), "{name} does not say {line}");
        }
    }
}

#[test]
fn what_is_missing_or_too_much_is_caught() {
    let packages = Packages::built();
    let mut files = packages.debian_files();
    let removed = files.iter().position(|file| file.ends_with(".control")).expect("a control file");
    let control = files.remove(removed);
    assert_caught(check::debian_files(&files), "snowflake_pg.control");
    files.insert(removed, control);
    files.push("usr/bin/snowflake_pg".into());
    assert_caught(check::debian_files(&files), "usr/bin/snowflake_pg");

    let listing = packages.archive_listing();
    assert_caught(check::archive_files(&listing.replace("0/0", "1000/1000")), "belongs to");
    assert_caught(check::archive_files(&listing.replace("/INSTALL", "/INSTALLED")), "INSTALL");
    let last_first: String = listing.lines().rev().map(|line| format!("{line}\n")).collect();
    assert_caught(check::archive_files(&last_first), "order");
    assert_caught(check::fields(&packages.fields().replace("libc6 (>= 2.34)", "libc6 (>= 2.36)")), "2.34");
    assert_caught(check::fields(&packages.fields().replace("libpq5 (>= ", "libpq4 (>= ")), "client library");
    assert_caught(check::page_size(3_500_000), "and the page says");
    assert_caught(check::stripped(&build::unstripped()), "not stripped");
}

#[test]
fn packages_built_again_are_the_same() {
    let packages = Packages::built();
    let before = packages.read();
    build::build();
    for (first, second) in before.iter().zip(&packages.read()) {
        assert!(first == second, "a second package differs from the first, though nothing was edited in between");
    }
}

#[test]
fn lintian_is_silent() {
    check::lintian(&Packages::built().debian).unwrap();
}

#[test]
fn a_package_that_is_not_as_debian_wants_it_is_caught() {
    let packages = Packages::built();
    let scratch = Scratch::new("packages_spoilt");
    let tree = packages.unpack_debian(&scratch);
    fs::copy(build::unstripped(), tree.join(format!("usr/lib/postgresql/{}/lib/snowflake_pg.so", major()))).unwrap();
    fs::remove_file(tree.join(build::docs()).join("copyright")).unwrap();
    let spoilt = scratch.0.join("spoilt.deb");
    output(command("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&tree).arg(&spoilt));
    assert_caught(check::lintian(&spoilt), "unstripped-binary-or-object");
    assert_caught(check::lintian(&spoilt), "no-copyright-file");
}

#[test]
fn the_debian_package_works_in_a_debian_that_has_nothing_else() {
    let Some(tree) = Tree::fresh("works") else { return };
    debian::check(&tree, &Packages::built().debian, &settings()).unwrap();
    debian::check_removal(&tree).unwrap();
}

#[test]
fn a_debian_without_the_package_is_caught() {
    let Some(tree) = Tree::fresh("lacks") else { return };
    tree.run(&format!("pg_ctlcluster {} main start", major())).unwrap();
    assert_caught(debian::check_session(&tree), "extension \"snowflake_pg\" is not available");
    // A file installed by hand, in a directory outside of the package.
    tree.run(&format!("touch /usr/share/postgresql/{}/extension/snowflake_pg.control", major())).unwrap();
    assert_caught(debian::check_nothing_left(&tree), "snowflake_pg.control");
}

#[test]
fn the_archive_works_in_a_copy_of_an_installation() {
    let Some(copy) = archive::Copy::new("archive") else { return };
    copy.install(&Packages::built().archive).unwrap();
    let server = copy.start(&settings()).unwrap();
    let mut session = server.session();
    session.batch_execute(ORDERS).unwrap();
    assert_eq!(session.one::<String>(LOOK), seen());
}

#[test]
fn the_library_prefers_the_libpq_of_its_postgresql() {
    let Some(copy) = archive::Copy::new("archive_libpq") else { return };
    copy.install(&Packages::built().archive).unwrap();
    // Debian's PostgreSQL has no libpq of its own. Others have.
    let _ = fs::remove_file(copy.own_libpq());
    let mut server = copy.start(&settings()).unwrap();
    let systems = archive::libpq(&server);
    assert_caught(copy.check_own_libpq(&server), &systems.to_string_lossy());
    server.stop(Stop::Fast);
    fs::copy(systems, copy.own_libpq()).unwrap();
    copy.start_again(&mut server).unwrap();
    copy.check_own_libpq(&server).unwrap();
}

#[test]
fn a_copy_without_the_files_is_caught() {
    let Some(copy) = archive::Copy::new("archive_lacks") else { return };
    let error = copy.start(&settings()).map(drop);
    assert_caught(error, "could not access file \"snowflake_pg\"");
    let server = copy.start("").unwrap();
    let created = server.connect().batch_execute("CREATE EXTENSION snowflake_registry");
    assert_caught(created.map_err(|error| sqlstate(&error).1), "extension \"snowflake_registry\" is not available");
    // A registry without a fleet.
    copy.install_registry(&Packages::built().archive);
    let mut session = server.connect();
    session.batch_execute("CREATE EXTENSION snowflake_registry").unwrap();
    assert_caught(archive::check_claims(&mut session), "the registry has no fleet");
}

#[test]
fn the_registry_of_the_archive_works_without_the_library() {
    let Some(copy) = archive::Copy::new("archive_registry") else { return };
    let installed = copy.install_registry(&Packages::built().archive);
    let upgrade = format!("snowflake_registry--0.2.0-dev--{VERSION}.sql");
    assert_eq!(installed, [&upgrade, &format!("snowflake_registry--{VERSION}.sql"), "snowflake_registry.control"]);
    let server = copy.start("").unwrap();
    let mut session = server.connect();
    let missing = session.refusal("LOAD 'snowflake_pg'").1;
    assert!(missing.contains("could not access file"), "{missing}");
    session.batch_execute("CREATE EXTENSION snowflake_registry").unwrap();
    archive::check_registry(&mut session).unwrap();
    // Where extension files cannot be installed, psql runs the script.
    session.batch_execute("CREATE DATABASE managed").unwrap();
    let script = copy.extensions().join(format!("snowflake_registry--{VERSION}.sql"));
    let mut psql = server.psql();
    output(psql.args(["-X", "-1", "-v", "ON_ERROR_STOP=1", "-d", "managed", "-f"]).arg(script));
    archive::check_registry(&mut server.connect_to("managed")).unwrap();
}

#[test]
fn the_description_for_pgxn_is_valid() {
    let text = page("META.json");
    check::meta(&text).unwrap();
    let spoil = |from: &str, to: &str| {
        let spoilt = text.replacen(from, to, 1);
        assert_ne!(spoilt, text);
        check::meta(&spoilt)
    };
    assert_caught(spoil(&format!("\"version\": \"{VERSION}\",\n  \"maintainer\""), "\"maintainer\""), "version");
    assert_caught(spoil("\"license\": \"postgresql\"", "\"license\": \"free\""), "license");
    assert_caught(spoil("docs/README.md", "docs/READ.md"), "docs/READ.md");
    assert_caught(spoil("registry/tables", "registry/chairs"), "registry/chairs");
}

#[test]
fn the_client_of_pgxn_installs() {
    let postgresql = Host::get().installation();
    if !postgresql.is_debians() || major() != "15" {
        not_tested("the page is about Debian's PostgreSQL 15");
        return;
    }
    for line in typed("sh pgxn") {
        // The page says so for a user who is not root.
        let line = if debian_root::is_root() { line } else { line.replace(" ./", " --sudo env ./") };
        let mut shell = command("sh");
        // The version is that of pg_config, not that of the environment.
        shell.args(["-e", "-c", &line]).current_dir(repository()).env_remove("PG").env_remove("PG_CONFIG");
        output(&mut shell);
    }
    assert!(postgresql.extensions.join(format!("snowflake_pg--{VERSION}.sql")).exists());
}

#[test]
fn the_dockerfile_is_as_hadolint_wants_it() {
    let text = page("Dockerfile");
    check::dockerfile(&text).unwrap();
    assert_caught(check::dockerfile(&text.replace("# hadolint ignore", "# ignore")), "DL3008");
    assert_caught(check::dockerfile(&text.replace("FROM postgres:${PG}-bookworm AS", "FROM postgres AS")), "DL3006");
}

#[test]
fn the_scripts_are_as_shellcheck_wants_them() {
    check::script("scripts/common.sh", &page("scripts/common.sh")).unwrap();
    let texts = texts_of(&["scripts", "packaging", ".ci/run", "debian/tests"], "");
    let scripts: Vec<_> = texts.iter().filter(|(_, text)| check::is_script(text)).collect();
    for name in ["scripts/package", "packaging/try", ".ci/run", "debian/tests/installcheck"] {
        assert!(scripts.iter().any(|(path, _)| path.ends_with(name)), "{name} is not checked");
    }
    for (path, text) in scripts {
        check::script(&path.to_string_lossy(), text).unwrap();
    }
    assert_caught(check::script("scripts/package", "#!/usr/bin/env bash\nrm -rf $1/*\n"), "SC2086");
    assert_caught(check::script(".ci/run", "#!/bin/sh\n[[ $1 = a ]]\n"), "SC3010");
}

#[test]
fn the_workflows_are_as_actionlint_wants_them() {
    let workflows = texts_of(&[".github/workflows"], ".yml");
    assert!(workflows.len() > 1, "{workflows:?}");
    for (path, text) in &workflows {
        check::workflow(text).unwrap_or_else(|said| panic!("{}: {said}", path.display()));
    }
    let release = page(".github/workflows/release.yml");
    let versions = supported().join(", ");
    let listed = release.matches(&format!("        pg: [{versions}]\n")).count();
    assert_eq!(release.matches("        pg: [").count(), listed);
    let spoilt = |from: &str, to: &str| {
        let spoilt = release.replacen(from, to, 1);
        assert_ne!(spoilt, release, "{from}");
        check::workflow(&spoilt)
    };
    assert_caught(spoilt("needs: packages", "needs: package"), "\"package\"");
    assert_caught(spoilt("${{ matrix.pg }}", "${{ matrix.postgresql }}"), "\"postgresql\"");
    assert_caught(spoilt("timeout-minutes:", "timeout-minute:"), "\"timeout-minute\"");
    assert_caught(spoilt("run: make rpm", "run: make $PG"), "SC2086");
    assert_caught(
        spoilt("uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683", "uses: actions/checkout@v4"),
        "pinned",
    );
}

#[test]
fn the_tests_of_the_debian_package_pass_in_an_empty_debian() {
    if !thorough() {
        return;
    }
    let Some(tree) = Tree::fresh("tests") else { return };
    debian::prepare_tests(&tree, &Packages::built().debian).unwrap();
    debian::check_tests(&tree).unwrap();
    tree.run("echo one more line >>sources/tests/pg_regress/expected/default_text.out").unwrap();
    assert_caught(debian::check_tests(&tree), "default_text                 ... FAILED");
}

/// The same script tries the packages of a release in new containers.
#[test]
fn the_script_that_tries_a_package_works_in_an_empty_debian() {
    let Some(tree) = Tree::fresh("try") else { return };
    tree.write(&format!("/etc/postgresql/{}/main/conf.d/other_port.conf", major()), "port = 5433\n");
    debian::check_try(&tree, &Packages::built().debian).unwrap();
}

#[test]
fn a_package_that_does_not_work_is_caught() {
    let Some(tree) = Tree::fresh("try_lacks") else { return };
    let scratch = Scratch::new("packages_lacks");
    let unpacked = Packages::built().unpack_debian(&scratch);
    let update = format!("usr/share/postgresql/{}/extension/snowflake_pg--0.1.0--{VERSION}.sql", major());
    fs::remove_file(unpacked.join(update)).unwrap();
    let spoilt = scratch.0.join(Packages::built().debian.file_name().unwrap());
    output(command("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&unpacked).arg(&spoilt));
    assert_caught(debian::check_try(&tree, &spoilt), "has no update path from version \"0.1.0\"");
}

#[test]
fn every_version_is_that_of_cargo() {
    let files = ["CHANGELOG.md", "debian/changelog", "META.json", "packaging/snowflake_pg.spec"];
    let texts = files.map(page);
    let check = |[changes, debian, meta, spec]: &[String; 4]| check::versions(changes, debian, meta, spec);
    check(&texts).unwrap();
    for (place, name) in ["CHANGELOG.md", "debian/changelog", "META.json", "the spec"].iter().enumerate() {
        let mut older = texts.clone();
        older[place] = older[place].replacen(VERSION, "0.0.9", 1);
        assert_caught(check(&older), name);
    }
}

/// Whether a text names the project's host only in the address of Cargo.toml and in addresses for mail.
fn check_address(path: &str, text: &str) -> Result<(), String> {
    let address = env!("CARGO_PKG_REPOSITORY");
    let (_, rest) = address.split_once("://").expect("an address");
    let host = rest.split('/').next().expect("a host");
    for (at, _) in text.match_indices(host) {
        let own = text[..at].ends_with("://") && text[at..].starts_with(rest);
        ensure!(own || text[..at].ends_with('@'), "{path} has another address than {address}");
    }
    Ok(())
}

#[test]
fn every_file_has_the_address_of_cargo() {
    let tracked = output(command("git").args(["ls-files"]).current_dir(repository()));
    let texts = tracked.lines().filter_map(|path| Some((path, fs::read_to_string(repository().join(path)).ok()?)));
    // A test changes the address to show that it is compared.
    let texts: Vec<_> = texts.filter(|(path, _)| !path.ends_with(".rs")).collect();
    assert!(texts.iter().filter(|(_, text)| text.contains(env!("CARGO_PKG_REPOSITORY"))).count() > 4);
    texts.iter().try_for_each(|(path, text)| check_address(path, text)).unwrap();
    let meta = page("META.json");
    assert_caught(check_address("META.json", &meta.replacen("/snowflake_pg/issues", "/other", 1)), "META.json");
}
