//! The image that contains only the extension. The test does with the archive what the Dockerfile does with it, and mounts the
//! result into a copy of an installation that has none of the extension's files, as CloudNativePG mounts an extension image.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cluster::{
    Answer, Builder, Cluster, Host, Recipe, Scratch, Stop, assert_caught, command, ensure, major, not_tested, output,
    page, typed, watch,
};

use crate::archive::{Copy, check_registry, libpq};
use crate::build::{Packages, VERSION};
use crate::check;
use crate::page::{LOOK, ORDERS, seen};

const PAGE: &str = "docs/kubernetes.md";

/// Where the page mounts images.
const MOUNTS: &str = "/extensions";

/// The first version that finds the files of an extension outside of the installation.
const FIRST: u32 = 18;

/// The instructions of a stage of the Dockerfile, each with its arguments. A continued line is part of the line before it.
fn stage(name: &str) -> Vec<(String, Vec<String>)> {
    let text = page("Dockerfile").replace("\\\n", "");
    let (end, begins) = (format!(" AS {name}"), |line: &&str| line.starts_with("FROM "));
    let lines = text.lines().skip_while(|line| !(begins(line) && line.ends_with(&end))).skip(1);
    let lines = lines.take_while(|line| !begins(line)).filter(|line| !line.is_empty());
    let words = lines.map(|line| line.split(' ').map(String::from).collect::<Vec<_>>());
    words.map(|mut words| (words.remove(0), words)).collect()
}

/// The labels of a stage for the version that is tested.
fn labels(name: &str) -> BTreeMap<String, String> {
    let version = page("Dockerfile").lines().find_map(|line| Some(line.strip_prefix("ARG VERSION=")?.to_string()));
    let version = version.expect("the Dockerfile names the version");
    let labels = stage(name).into_iter().filter(|(instruction, _)| instruction == "LABEL");
    let text = labels.map(|(_, arguments)| arguments.join(" ")).collect::<Vec<_>>().join(" ");
    let text = text.replace("${PG}", &major()).replace("${VERSION}", &version);
    let parts: Vec<&str> = text.split('"').collect();
    let pairs = parts.chunks_exact(2).map(|pair| (pair[0].trim().trim_end_matches('=').into(), pair[1].into()));
    pairs.collect()
}

/// Whether the labels of a stage are those of this version, with the keys of the OCI and the prefixes of others.
fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), String> {
    for key in ["title", "description", "version", "licenses", "source", "base.name"] {
        let label = labels.get(&format!("org.opencontainers.image.{key}"));
        ensure!(label.is_some_and(|label| !label.is_empty() && !label.contains('$')), "the label {key} is {label:?}");
    }
    let version = &labels["org.opencontainers.image.version"];
    ensure!(version == VERSION, "the version of the image is {version}");
    let spec = page("packaging/snowflake_pg.spec");
    let licences = spec.lines().find_map(|line| line.strip_prefix("License:")).ok_or("the spec has no licence")?.trim();
    let found = &labels["org.opencontainers.image.licenses"];
    ensure!(found == licences, "the licences of the image are {found}, and those of the rpm {licences}");
    Ok(())
}

/// Builds the image in a directory called `snowflake-pg`, which is below the directory of the mounts.
fn build(name: &str) -> Scratch {
    let mounts = Scratch::new(&format!("packages_{name}.mounts"));
    let image = mounts.0.join("snowflake-pg");
    let work = Scratch::new(&format!("packages_{name}.src"));
    let packages = work.0.join("target/packages");
    fs::create_dir_all(&packages).expect("a new directory can be written");
    output(command("cp").arg(&Packages::built().archive).arg(packages));
    let unpacked = work.0.join("archive");
    let here = |path: &str| path.replace("/archive", &unpacked.display().to_string());
    let [(run, arguments)] = &stage("archive")[..] else { panic!("the stage has one instruction") };
    assert_eq!(run, "RUN");
    output(command("sh").args(["-e", "-c", &here(&arguments.join(" "))]).current_dir(&work.0));
    assert!(page("Dockerfile").contains("\nFROM scratch AS extension\n"), "the image contains a system");
    for (copy, arguments) in stage("extension") {
        if ["ARG", "LABEL"].contains(&copy.as_str()) {
            continue;
        }
        let [from, source, target] = &arguments[..] else { panic!("not understood: {arguments:?}") };
        assert_eq!((copy.as_str(), from.as_str()), ("COPY", "--from=archive"));
        let (source, target) = (PathBuf::from(here(source)), image.join(target.trim_start_matches('/')));
        fs::create_dir_all(target.parent().expect("a path")).expect("a new directory can be written");
        output(command("cp").args(["--recursive", "--no-target-directory"]).arg(source).arg(target));
    }
    mounts
}

/// The files below a directory, in order.
fn files(dir: &Path) -> Vec<String> {
    let found = output(command("find").args([".", "-type", "f"]).current_dir(dir));
    let mut files: Vec<String> = found.lines().map(|line| line.trim_start_matches("./").into()).collect();
    files.sort();
    files
}

/// The blocks of the page about the image: commands, files and settings.
fn image_blocks() -> [String; 3] {
    Recipe::of(PAGE, "The extension image").rest(["sh image", "text image", "conf image"])
}

/// The settings of a server with the image, as the page says.
fn settings(mounts: &Scratch) -> String {
    let [_, _, conf] = image_blocks();
    let conf = conf.replace(MOUNTS, &mounts.0.display().to_string());
    format!("{conf}snowflake_pg.worker_id = 7\n")
}

/// Configures a cluster with these settings.
fn configured(name: &str, settings: &str) -> Builder {
    let builder = Cluster::builder(name);
    cluster::settings(settings).fold(builder, |builder, (name, value)| builder.set(name, value))
}

/// Returns an installation without the extension and the mounted image, or `None`, and prints why, if this version cannot use it.
fn mounted(name: &str) -> Option<(Copy, Scratch)> {
    if major().parse::<u32>().expect("a number") < FIRST {
        not_tested(&format!("PostgreSQL {} finds extensions only in its own directories", major()));
        return None;
    }
    Some((Copy::new(name)?, build(name)))
}

#[test]
fn the_image_holds_what_the_page_lists() {
    let mounts = build("image_files");
    let (pages, found): (Vec<String>, Vec<String>) =
        files(&mounts.0.join("snowflake-pg")).into_iter().partition(|file| file.starts_with("share/snowflake_pg/"));
    let mut shipped: Vec<String> = check::page_files().iter().map(|name| format!("share/{name}")).collect();
    shipped.sort();
    assert_eq!(pages, shipped);
    let mut wanted: Vec<String> =
        check::extension_files().iter().map(|name| format!("share/extension/{name}")).collect();
    let beside = ["lib/snowflake_pg.so", "licenses/snowflake_pg/LICENSE", "licenses/snowflake_pg/NOTICES"];
    wanted.extend(beside.map(String::from));
    wanted.sort();
    assert_eq!(found, wanted);
    let [commands, listed, _] = image_blocks();
    assert_eq!(found, listed.lines().collect::<Vec<_>>());
    // The commands of the page name the stage, the versions and the Debian of the Dockerfile.
    for part in [
        "--target extension ",
        &format!("--build-arg PG={FIRST} "),
        &format!("/snowflake_pg:{VERSION}-{FIRST}-bookworm "),
    ] {
        assert!(commands.contains(part), "no {part:?} in {commands}");
    }
    assert!(page("Dockerfile").contains("\nFROM postgres:${PG}-bookworm AS build\n"));
    // Without a target, the last stage is built, which is the server of docs/installing.md.
    assert!(page("Dockerfile").rsplit("\nFROM ").next().is_some_and(|last| last.starts_with("postgres:")));
}

#[test]
fn the_labels_of_the_images_describe_them() {
    for name in ["extension", "server"] {
        check_labels(&labels(name)).unwrap();
    }
    let extension = labels("extension");
    // CloudNativePG's own images of extensions have these labels, too.
    for (key, value) in [("base.pgmajor", major()), ("base.os", "bookworm".into()), ("sql.version", VERSION.into())] {
        assert_eq!(extension.get(&format!("io.cloudnativepg.image.{key}")), Some(&value), "{key}");
    }
    assert_eq!(extension["org.opencontainers.image.base.name"], "scratch");
    assert_eq!(labels("server")["org.opencontainers.image.base.name"], format!("postgres:{}-bookworm", major()));
    let spoilt = |key: &str, value: &str| {
        let mut labels = extension.clone();
        labels.insert(format!("org.opencontainers.image.{key}"), value.into());
        check_labels(&labels)
    };
    assert_caught(spoilt("version", "0.0.9"), "the version of the image is 0.0.9");
    assert_caught(spoilt("description", "for ${MAJOR}"), "the label description");
    assert_caught(spoilt("licenses", "PostgreSQL"), "and those of the rpm");
}

#[test]
fn the_image_works_in_an_installation_without_the_files() {
    let Some((copy, mounts)) = mounted("image") else { return };
    let mut server = copy.start(&settings(&mounts)).unwrap();
    let mut session = server.connect();
    let sql = "CREATE EXTENSION snowflake_pg VERSION '0.1.0'; ALTER EXTENSION snowflake_pg UPDATE";
    session.batch_execute(sql).unwrap();
    session.batch_execute(ORDERS).unwrap();
    assert_eq!(session.one::<String>(LOOK), seen());
    session.batch_execute("CREATE EXTENSION snowflake_registry").unwrap();
    check_registry(&mut session).unwrap();
    // The catalog contains no path, so that the image can be mounted elsewhere.
    let libraries = "SELECT DISTINCT probin FROM pg_proc WHERE proname LIKE 'snowflake\\_%' AND probin IS NOT NULL";
    assert_eq!(session.all::<String>(libraries), ["snowflake_pg"]);
    // The image contains no libpq.
    assert!(!libpq(&server).starts_with(&mounts.0));

    session.batch_execute("CREATE DATABASE restored").unwrap();
    let dump = output(&mut server.program("pg_dump"));
    let mut psql = server.psql();
    psql.args(["-d", "restored"]);
    typed(psql, &dump).unwrap();
    assert_eq!(server.connect_to("restored").one::<String>(LOOK), seen());

    drop(session);
    server.stop(Stop::Fast);
    let settings = settings(&mounts);
    let unmounted = upgrade(&copy, &server, "image_unmounted", &settings.replace("/snowflake-pg/", "/another/"));
    assert_caught(unmounted.map(drop), "could not access file \"snowflake_pg\"");
    let mut upgraded = upgrade(&copy, &server, "image_upgraded", &settings).unwrap();
    copy.start_again(&mut upgraded).unwrap();
    let mut session = upgraded.connect();
    assert_eq!(session.one::<String>(LOOK), seen());
    session.batch_execute("INSERT INTO orders (n) SELECT generate_series(1, 1000)").unwrap();
    assert_eq!(session.one::<i64>("SELECT count(DISTINCT id) FROM orders"), 2000);
}

/// Moves a stopped server to a new cluster with these settings.
fn upgrade(copy: &Copy, old: &Cluster, name: &str, settings: &str) -> Result<Cluster, String> {
    let mut new = configured(name, settings).create_anew();
    // This also writes the other settings.
    new.set("autovacuum", "off");
    let work = Scratch::new(&format!("packages_{name}.upgrade"));
    let mut pg_upgrade = Host::get().command(&copy.bin().join("pg_upgrade"));
    pg_upgrade.current_dir(&work.0).args(["--username=postgres", "--no-sync", "--socketdir"]).arg(new.socket());
    watch(new.dir());
    pg_upgrade.args(
        ["--old-datadir", "--new-datadir"]
            .iter()
            .zip([old.dir(), new.dir()])
            .flat_map(|(flag, dir)| [(*flag).into(), dir.as_os_str().to_owned()]),
    );
    pg_upgrade.arg("--old-bindir").arg(copy.bin()).arg("--new-bindir").arg(copy.bin());
    let ended = pg_upgrade.output().expect("the program can be run");
    let logs =
        output(command("sh").args(["-c", "find \"$0\" -name '*.txt' -o -name '*.log' | xargs -r cat"]).arg(new.dir()));
    ensure!(ended.status.success(), "{}\n{logs}", String::from_utf8_lossy(&ended.stdout));
    Ok(new)
}

#[test]
fn an_image_that_is_not_mounted_is_caught() {
    let Some((copy, mounts)) = mounted("image_lacks") else { return };
    let settings = settings(&mounts);
    let unmounted = settings.replace("/snowflake-pg/", "/another/");
    assert_caught(copy.start(&unmounted).map(drop), "could not access file \"snowflake_pg\"");
    // With the library alone, the server starts, but has no extension.
    let library = settings.replace("/snowflake-pg/share", "/another/share");
    let server = copy.start(&library).unwrap();
    let created = server.connect().refusal("CREATE EXTENSION snowflake_pg").1;
    assert_caught(Err(created), "extension \"snowflake_pg\" is not available");
}
