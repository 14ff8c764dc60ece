//! `make docs` builds a site in which every link leads somewhere, and which makes no request to another host.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use cluster::{Scratch, assert_caught, command, ensure, output, repository};

/// The names of the attributes that make a browser follow or load something.
const LINKING: [&str; 4] = ["href", "src", "srcset", "action"];

/// The links of a page of the site, each with the name of its element, and the fragments to which other pages can link.
#[derive(Default)]
struct SitePage {
    links: Vec<(String, String)>,
    fragments: BTreeSet<String>,
}

impl SitePage {
    /// Reads the elements of a page, without the code of its scripts.
    fn read(html: &str) -> SitePage {
        let (mut page, mut rest) = (SitePage::default(), html);
        while let Some((_, after)) = rest.split_once('<') {
            let name: String = after.chars().take_while(char::is_ascii_alphanumeric).collect();
            rest = page.element(&name, &after[name.len()..]);
            if name == "script" {
                rest = rest.split_once("</script").map_or("", |(_, rest)| rest);
            }
        }
        page
    }

    /// Reads the attributes of an element, and returns what follows it.
    fn element<'a>(&mut self, element: &str, text: &'a str) -> &'a str {
        let mut rest = text;
        loop {
            let Some(end) = rest.find(['"', '>']) else { return "" };
            if rest[end..].starts_with('>') {
                return &rest[end + 1..];
            }
            let name = rest[..end].trim_end_matches('=').rsplit(char::is_whitespace).next().unwrap_or_default();
            let Some((value, after)) = rest[end + 1..].split_once('"') else { return "" };
            if name == "id" || name == "name" {
                self.fragments.insert(value.into());
            } else if LINKING.contains(&name) {
                self.links.push((element.into(), value.replace("&amp;", "&")));
            }
            rest = after;
        }
    }
}

/// Returns the files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    output(command("find").arg("-L").arg(folder).args(["-type", "f"])).lines().map(PathBuf::from).collect()
}

/// Returns true if a link leads to another host.
fn is_external(link: &str) -> bool {
    link.starts_with("//")
        || link.split_once(':').is_some_and(|(scheme, _)| !scheme.contains(['/', '#', '?']) && scheme != "data")
}

/// Checks one link of the page in this file.
fn check_link(file: &Path, pages: &BTreeMap<PathBuf, SitePage>, element: &str, link: &str) -> Result<(), String> {
    if is_external(link) {
        ensure!(element == "a", "<{element}> loads {link}");
        return Ok(());
    }
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let path = path.split('?').next().unwrap_or_default();
    if path.starts_with("data:") {
        return Ok(());
    }
    let target = if path.is_empty() { Ok(file.to_path_buf()) } else { file.with_file_name(path).canonicalize() };
    let Ok(target) = target else { return Err(format!("{link} leads to no file")) };
    ensure!(target.is_file(), "{link} leads to a folder, which a browser lists");
    let known = pages.get(&target).is_none_or(|page| page.fragments.contains(fragment));
    ensure!(fragment.is_empty() || fragment == "top" || known, "{link}: there is no #{fragment}");
    Ok(())
}

/// Checks all links of a site, and checks that its styles load nothing from another host.
fn check(site: &Path) -> Result<(), String> {
    let site = site.canonicalize().expect("a site");
    let (mut pages, files) = (BTreeMap::new(), files(&site));
    let has = |file: &Path, extension: &str| file.extension().is_some_and(|found| found == extension);
    for file in files.iter().filter(|file| has(file, "html")) {
        pages.insert(file.clone(), SitePage::read(&fs::read_to_string(file).expect("a page can be read")));
    }
    ensure!(pages.contains_key(&site.join("index.html")), "there is no index.html");
    let mut wrong = Vec::new();
    for (file, page) in &pages {
        for (element, link) in &page.links {
            if let Err(reason) = check_link(file, &pages, element, link) {
                wrong.push(format!("{}: {reason}", file.strip_prefix(&site).expect("a page of the site").display()));
            }
        }
    }
    for file in files.iter().filter(|file| has(file, "css")) {
        let text = fs::read_to_string(file).expect("a style can be read");
        let loaded = text.split("url(").skip(1).map(|rest| rest.trim_start_matches(['"', '\'']));
        wrong.extend(loaded.filter(|url| is_external(url)).map(|url| format!("{} loads {url:.60}", file.display())));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn every_link_leads_somewhere() {
    let printed = output(command("make").arg("docs").current_dir(repository()));
    assert!(printed.ends_with("docs: ok, open target/site/index.html"), "{printed}");
    let site = repository().join("target/site");
    check(&site).unwrap();
    // Each page of the repository is also a page of the site.
    for page in
        ["README", "CONTRIBUTING", "CHANGELOG", "SECURITY", "docs/README", "docs/errors", "bench/results/15/results"]
    {
        assert!(site.join(format!("{page}.html")).is_file(), "{page}");
    }
    let front = fs::read_to_string(site.join("index.html")).expect("the front page");
    for part in [env!("CARGO_PKG_VERSION"), "Start", "Use", "Operate", "Understand", "action=\"search.html\""] {
        assert!(front.contains(part), "the front page does not have {part}");
    }
}

#[test]
fn a_link_of_the_site_to_nothing_is_caught() {
    let scratch = Scratch::new("site_links");
    let site = |page: &str, style: &str| {
        scratch.write("index.html", &format!("<p id=\"here\"><script>if (a<b) f('<a href=\"x\">')</script>{page}"));
        scratch.write("style.css", style);
        check(&scratch.0)
    };
    site("<a class=\"x\" href=\"https://rustup.rs\">a</a> <a href=\"#here\">b</a> <a href=\"style.css?v=1\">c</a>", "")
        .unwrap();
    assert_caught(site("<a href=\"none.html\">a</a>", ""), "none.html leads to no file");
    assert_caught(site("<a href=\"#there\">a</a>", ""), "there is no #there");
    assert_caught(site("<a href=\"index.html#there\">a</a>", ""), "there is no #there");
    assert_caught(site("<a href=\".\">a</a>", ""), "leads to a folder");
    assert_caught(site("<img src=\"https://rustup.rs/a.svg\">", ""), "<img> loads https://rustup.rs/a.svg");
    assert_caught(site("<link rel=\"stylesheet\" href=\"//rustup.rs/a.css\">", ""), "<link> loads //rustup.rs/a.css");
    assert_caught(site("", "@font-face { src: url('https://rustup.rs/a.woff') }"), "loads https://rustup.rs/a.woff");
}

/// This is the negative control of the build: Sphinx must refuse a page with a link to a heading that does not exist.
#[test]
fn a_broken_page_is_caught() {
    let scratch = Scratch::new("site_broken");
    output(command("cp").args(["-R", "scripts", "Cargo.toml"]).arg(&scratch.0).current_dir(repository()));
    for folder in ["docs", "target"] {
        fs::create_dir(scratch.0.join(folder)).expect("a new directory can be written");
    }
    output(command("cp").args(["-R", "docs/site"]).arg(scratch.0.join("docs")).current_dir(repository()));
    // Sphinx is installed only once, so the copy of the repository uses the same installation.
    fs::create_dir_all(repository().join("target/tools")).expect("target/ can be written");
    symlink(repository().join("target/tools"), scratch.0.join("target/tools")).expect("a new link");
    scratch.write("README.md", "# Front page\n\n[Pages](docs/README.md#start)\n");
    scratch.write("docs/README.md", "# Pages\n\n## Start\n\n- [Page](page.md)\n");
    let build = |page: &str| {
        scratch.write("docs/page.md", page);
        let built = command("scripts/docs").current_dir(&scratch.0).output().expect("scripts/docs can be run");
        let (printed, said) = (String::from_utf8_lossy(&built.stdout), String::from_utf8_lossy(&built.stderr));
        ensure!(built.status.success() && printed.contains("docs: ok"), "{said}{printed}");
        Ok(())
    };
    build("# Page\n\n[Right](README.md#start)\n").unwrap();
    assert_caught(build("# Page\n\n[Wrong](README.md#no-such-section)\n"), "no-such-section");
    assert_caught(build("# Page\n\n[Wrong](no_such_page.md)\n"), "docs: FAILED");
}
