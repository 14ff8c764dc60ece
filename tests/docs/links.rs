//! Every link in a Markdown file leads to a file of the repository, and its anchor leads to a heading of that file, as on GitHub.
//! The pages that messages and scripts name exist as well.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use cluster::{assert_caught, ensure, repository, texts_of};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Build results, which a page cannot lead to.
const BUILT: &str = "target";

/// Folders and files, other than pages, that name pages.
const NAMING: [&str; 10] = [
    "src",
    "sql",
    "crates/flake/src",
    "crates/cluster/src",
    "demo",
    "scripts",
    "packaging",
    "debian",
    "Makefile",
    "snowflake_pg.control",
];

/// A page: its links and images, and the anchors of its headings.
#[derive(Default)]
struct LinkedPage {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

/// Returns the values of an attribute in a piece of HTML.
fn attributes(html: &str, name: &str) -> Vec<String> {
    let begin = format!(" {name}=\"");
    html.split(&begin).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.into())).collect()
}

/// Returns the anchor that GitHub gives the first heading with this text.
pub fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

impl LinkedPage {
    /// Reads a page.
    fn read(text: &str) -> LinkedPage {
        let (mut page, mut heading, mut seen) = (LinkedPage::default(), None, BTreeMap::new());
        for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_GFM) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    let times = seen.entry(slug.clone()).or_insert(0);
                    page.anchors.insert(if *times == 0 { slug } else { format!("{slug}-{times}") });
                    *times += 1;
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    page.links.extend(["href", "src", "srcset"].iter().flat_map(|name| attributes(&html, name)));
                    page.anchors.extend(["id", "name"].iter().flat_map(|name| attributes(&html, name)));
                }
                Event::Text(part) | Event::Code(part) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&part);
                    }
                }
                _ => {}
            }
        }
        page
    }
}

/// Returns the path to which a link in the file `file` leads, or `None` if the link leads out of the repository.
fn target(file: &Path, link: &str) -> Option<PathBuf> {
    let mut found = file.parent()?.to_path_buf();
    for part in Path::new(link).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if found.pop() => {}
            Component::Normal(name) => found.push(name),
            _ => return None,
        }
    }
    Some(found)
}

/// Checks that a link to another host has a valid form.
fn check_external(link: &str) -> Result<(), String> {
    if let Some(address) = link.strip_prefix("mailto:") {
        ensure!(address.contains('@'), "{link} is not an address");
        return Ok(());
    }
    let host = link.strip_prefix("https://").unwrap_or_default().split(['/', '#', '?']).next().unwrap_or_default();
    let valid = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    let valid = host.contains('.') && host.chars().all(valid) && !link.contains(' ');
    ensure!(valid, "{link} does not begin with https:// and a host");
    Ok(())
}

/// Checks the links of the page with the path `file`. `pages` contains all pages.
fn check(file: &Path, pages: &BTreeMap<PathBuf, LinkedPage>) -> Result<(), String> {
    for link in &pages[file].links {
        if link.contains(':') {
            check_external(link)?;
            continue;
        }
        let (path, anchor) = link.split_once('#').map_or((link.as_str(), None), |(path, anchor)| (path, Some(anchor)));
        let found = if path.is_empty() { Some(file.to_path_buf()) } else { target(file, path) };
        let Some(found) = found else { return Err(format!("{link} leads out of the repository")) };
        let exists = pages.contains_key(&found) || repository().join(&found).exists();
        ensure!(exists && !found.starts_with(BUILT), "{link}: there is no file {}", found.display());
        if let Some(anchor) = anchor {
            let Some(page) = pages.get(&found) else {
                return Err(format!("{link}: {} has no headings", found.display()));
            };
            ensure!(page.anchors.contains(anchor), "{link}: {} has no heading #{anchor}", found.display());
        }
    }
    Ok(())
}

/// Returns the Markdown files of the repository.
fn pages() -> BTreeMap<PathBuf, LinkedPage> {
    texts_of(&[""], ".md").into_iter().map(|(path, text)| (path, LinkedPage::read(&text))).collect()
}

/// Checks that the pages in `docs/` that a text names exist. A name that is part of a longer path, for example in a URL, is not
/// checked.
fn check_names(text: &str) -> Result<(), String> {
    for (at, start) in text.match_indices("docs/") {
        if text[..at].ends_with(|c: char| c.is_alphanumeric() || "/-_.".contains(c)) {
            continue;
        }
        let rest = &text[at + start.len()..];
        let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c)).next().unwrap_or_default();
        if let Some((page, "")) = name.trim_end_matches('.').rsplit_once(".md") {
            ensure!(repository().join("docs").join(format!("{page}.md")).exists(), "there is no page docs/{page}.md");
        }
    }
    Ok(())
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let broken: Vec<String> =
        pages.keys().filter_map(|file| Some(format!("{}: {}", file.display(), check(file, &pages).err()?))).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let links: usize = pages.values().map(|page| page.links.len()).sum();
    assert!(links > 100, "the pages have {links} links");
}

#[test]
fn every_page_that_is_named_elsewhere_exists() {
    for (file, text) in texts_of(&NAMING, "") {
        check_names(&text).unwrap_or_else(|reason| panic!("{}: {reason}", file.display()));
    }
}

#[test]
fn a_link_to_nothing_is_caught() {
    let check = |text: &str| {
        let file = PathBuf::from("docs/page.md");
        let mut pages = pages();
        pages.insert(file.clone(), LinkedPage::read(text));
        check(&file, &pages)
    };
    check("# A `b`, c_d: e?\n[a](#a-b-c_d-e) [r](../README.md) [t](../tests/docs) [x](https://rustup.rs/x#y)").unwrap();
    check("## Twice\n## Twice\n[a](#twice) [b](#twice-1)").unwrap();
    assert_caught(check("[a](#b)"), "docs/page.md has no heading #b");
    assert_caught(check("## Twice\n## Twice\n[b](#twice-2)"), "no heading #twice-2");
    assert_caught(check("[a](../README.md#no-such-section)"), "README.md has no heading");
    assert_caught(check("![a](pictures/none.svg)"), "there is no file docs/pictures/none.svg");
    assert_caught(check("<img alt=\"a\" src=\"none.svg\">"), "there is no file docs/none.svg");
    assert_caught(check("[a](README.txt)"), "there is no file docs/README.txt");
    assert_caught(check("[a](../../b.md)"), "leads out of the repository");
    assert_caught(check("[a](../target/site/index.html)"), "there is no file target");
    assert_caught(check("[a](https://rustup)"), "does not begin with https://");
    assert_caught(check("[a](http://rustup.rs)"), "does not begin with https://");
    assert_caught(check_names("See docs/hazards.md. See docs/no_such_page.md."), "docs/no_such_page.md");
}
