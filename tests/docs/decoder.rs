//! The decoder page, in Chromium.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use cluster::{SOON, Scratch, assert_caught, command, ensure, not_tested, output, repository, thorough, within};

/// The programs that show the page and control the browser.
const BROWSER: [&str; 2] = ["chromium", "chromedriver"];

/// The files with the tests that need a browser.
const PAGE: &str = "page.test.mjs";
const SCREEN: &str = "screen.test.mjs";

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

/// Copies the files of the page, and replaces a text in one of the copies.
fn copy_with(file: &str, (right, wrong): (&str, &str), scratch: &Scratch) -> PathBuf {
    let sources = scratch.0.join("decoder");
    output(command("cp").arg("-r").arg(repository().join("decoder")).arg(&sources));
    let text = fs::read_to_string(sources.join(file)).expect("a file of the page");
    assert_eq!(text.matches(right).count(), 1, "{right}");
    fs::write(sources.join(file), text.replace(right, wrong)).expect("a copy can be written");
    sources
}

/// Builds the page after replacing a text in one of its files.
fn build_with(file: &str, edit: (&str, &str), scratch: &Scratch) -> Result<PathBuf, String> {
    let page = scratch.0.join("built/decoder.html");
    let built = command("python3").arg("-B").arg(copy_with(file, edit, scratch).join("build.py")).arg(&page).output();
    let built = built.expect("python3 is installed (Debian: python3)");
    ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Ok(page)
}

/// Runs the tests of the forms of an ID and of the suggestion, which need no browser.
fn check_forms(sources: &Path) -> Result<(), String> {
    let mut node = command("node");
    node.arg("--test").arg(sources.join("test/forms.test.mjs"));
    let run = node.env("VECTORS", repository().join("tests/vectors.json")).output();
    let run = run.expect("node is installed (Debian: nodejs)");
    ensure!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    Ok(())
}

/// Runs the tests of a file whose names match a pattern, and checks that their browser has ended.
fn check_page(page: &Path, file: &str, pattern: &str) -> Result<(), String> {
    let test = repository().join("decoder/test").join(file);
    // The path is short because Chromium creates a socket in this directory.
    let files = env::temp_dir().join(format!("decoder-{}", process::id()));
    fs::create_dir(&files).expect("the temporary directory can be written");
    let mut node = command("node");
    node.args(["--test", &format!("--test-name-pattern={pattern}")]).arg(test);
    let run = node.env("PAGE", page).env("TMPDIR", &files).output().expect("node is installed (Debian: nodejs)");
    let told = String::from_utf8_lossy(&run.stdout).into_owned();
    let ended = within(SOON, || processes_in(&files).is_empty());
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
    check_page(&page, PAGE, ".").unwrap();
    if thorough() {
        check_page(&page, SCREEN, ".").unwrap();
    }
}

#[test]
fn a_pasted_url_separators_and_uuids_are_understood_and_markers_suggest_nothing() {
    check_forms(&repository().join("decoder")).unwrap();
    // The negative controls.
    let ids = "1541815603606036480 1541815603606036481";
    for (name, file, edit, seen) in [
        ("list", "read.mjs", ("digits.length > String(MAX_ID).length", "digits.length > 99"), ids),
        ("longest", "read.mjs", ("best.part.length > other.part.length", "best.part.length > 0"), "1700000000000n"),
        ("host", "read.mjs", ("decoded(text.replace(host, \"\"))", "decoded(text)"), "1541815603606036480.example"),
        ("word", "read.mjs", ("/^[0-7]/.test(part)", "true"), "international"),
        ("uuid", "uuid.mjs", ("[12n, 64n]", "[12n, 63n]"), "1541815603606044680"),
        ("marker", "suggest.mjs", ("(id & (id + 1n)) === 0n", "false"), "9007199254740991"),
        ("large", "suggest.mjs", ("const LONGEST = 74", "const LONGEST = 99"), "9223372036854775806"),
        ("mastodon", "suggest.mjs", ("SINCE_MS[name] ??", ""), "123456789012345"),
        ("usual", "suggest.mjs", ("const LONGEST = 74", "const LONGEST = 70"), "sonyflake: large"),
    ] {
        let scratch = Scratch::new(&format!("decoder_forms_{name}"));
        assert_caught(check_forms(&copy_with(file, edit, &scratch)), seen);
    }
}

#[test]
fn the_readme_leads_to_the_decoder() {
    assert!(cluster::page("README.md").contains("[decoder page](decoder/)"), "the README does not link to the decoder");
}

#[test]
fn a_page_that_rounds_ids_requests_something_or_hides_digits_is_caught() {
    if !has_browser() {
        return;
    }
    let rounding = ("const id = BigInt(text);", "const id = BigInt(Number(text));");
    let rounded = "the page shows 9007199254740992 instead of 9007199254740993";
    let scroll = "tells the person to scroll";
    for (name, file, edit, test, pattern, seen) in [
        ("rounds", "read.mjs", rounding, PAGE, "exact to its last digit", rounded),
        ("requests", "index.html", ("default-src 'none'; ", ""), PAGE, "the page requests nothing", "connect-src"),
        ("scroll", "show.mjs", ("hint.hidden = hidden <= 1;", ""), SCREEN, scroll, scroll),
    ] {
        let scratch = Scratch::new(&format!("decoder_{name}"));
        let page = build_with(file, edit, &scratch).unwrap();
        assert_caught(check_page(&page, test, pattern), seen);
    }
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
