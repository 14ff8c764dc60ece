//! The decoder page, in Chromium.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, process};

use cluster::{Scratch, assert_caught, command, ensure, not_tested, output, repository, within};

/// The programs that show the page and control the browser.
const BROWSER: [&str; 2] = ["chromium", "chromedriver"];

/// How long the processes of a browser may take to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns false on a machine for which `scripts/setup test` does not install a browser, and reports that the page is not tested.
fn has_browser() -> bool {
    let absent = BROWSER.iter().find(|program| command(program).arg("--version").output().is_err());
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let installed = system.lines().any(|line| line == "ID=debian") && cfg!(target_arch = "x86_64");
    match absent {
        Some(program) if installed => panic!("{program} is missing: `make setup-test` installs it"),
        Some(program) => {
            not_tested(&format!("the decoder page, because there is no {program}"));
            false
        }
        None => true,
    }
}

/// Builds the page from a folder that contains the files of `decoder/`.
fn build(sources: &Path, scratch: &Scratch) -> Result<PathBuf, String> {
    let page = scratch.0.join("built/decoder.html");
    let built = command("python3").arg("-B").arg(sources.join("build.py")).arg(&page).output();
    let built = built.expect("python3 is installed (Debian: python3)");
    ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Ok(page)
}

/// Builds the page after replacing a text in one of its files.
fn build_with(file: &str, (right, wrong): (&str, &str), scratch: &Scratch) -> Result<PathBuf, String> {
    let sources = scratch.0.join("decoder");
    output(command("cp").arg("-r").arg(repository().join("decoder")).arg(&sources));
    let text = fs::read_to_string(sources.join(file)).expect("a file of the page");
    assert_eq!(text.matches(right).count(), 1, "{right}");
    fs::write(sources.join(file), text.replace(right, wrong)).expect("a copy can be written");
    build(&sources, scratch)
}

/// Runs the page's tests whose names match a pattern, and checks that their browser has ended.
fn check_page(page: &Path, pattern: &str) -> Result<(), String> {
    let test = repository().join("decoder/test/page.test.mjs");
    // The path is short because Chromium creates a socket in this directory.
    let files = env::temp_dir().join(format!("decoder-{}", process::id()));
    fs::create_dir(&files).expect("the temporary directory can be written");
    let mut node = command("node");
    node.args(["--test", &format!("--test-name-pattern={pattern}")]).arg(test);
    let run = node.env("PAGE", page).env("TMPDIR", &files).output().expect("node is installed (Debian: nodejs)");
    let told = String::from_utf8_lossy(&run.stdout).into_owned();
    let ended = within(PATIENCE, || processes_in(&files).is_empty());
    assert!(ended, "these processes are left:\n{}\n{told}", processes_in(&files).join("\n"));
    let _ = fs::remove_dir_all(&files);
    ensure!(run.status.success(), "{told}{}", String::from_utf8_lossy(&run.stderr));
    Ok(())
}

/// Returns the command lines of processes that name a file in a directory.
fn processes_in(directory: &Path) -> Vec<String> {
    let directory = format!("{}/", directory.display());
    let all = fs::read_dir("/proc").expect("Linux").filter_map(|entry| {
        let line = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    all.filter(|line| line.contains(&directory)).collect()
}

#[test]
fn the_page_works_in_a_browser() {
    if !has_browser() {
        return;
    }
    let scratch = Scratch::new("decoder_page");
    let page = scratch.0.join("built/page.html");
    let printed = output(command(repository().join("scripts/decoder")).arg(&page));
    assert_eq!(Path::new(&printed), page);
    check_page(&page, ".").unwrap();
}

#[test]
fn a_page_that_rounds_ids_is_caught() {
    if !has_browser() {
        return;
    }
    let scratch = Scratch::new("decoder_rounds");
    let rounding = ("const id = BigInt(text);", "const id = BigInt(Number(text));");
    let page = build_with("read.mjs", rounding, &scratch).unwrap();
    let outcome = check_page(&page, "exact to its last digit");
    assert_caught(outcome, "the page shows 9007199254740992 instead of 9007199254740993");
}

#[test]
fn a_page_that_may_request_something_is_caught() {
    if !has_browser() {
        return;
    }
    let scratch = Scratch::new("decoder_requests");
    let page = build_with("index.html", ("default-src 'none'; ", ""), &scratch).unwrap();
    assert_caught(check_page(&page, "the page requests nothing"), "connect-src");
}

#[test]
fn a_page_that_needs_another_file_is_caught() {
    let font =
        ("<link rel=\"icon\" href=\"data:,\">", "<link rel=\"stylesheet\" href=\"https://example.com/font.css\">");
    let outcome = build_with("index.html", font, &Scratch::new("decoder_font")).map(drop);
    assert_caught(outcome, "decoder/index.html refers to another file");
    let import = ("import { $, copyButton, element } from \"./dom.mjs\";", "import * as dom from \"./dom.mjs\";");
    let outcome = build_with("show.mjs", import, &Scratch::new("decoder_import")).map(drop);
    assert_caught(outcome, "this form of import or export is not supported");
}
