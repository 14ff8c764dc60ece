//! The pictures on the pages are as `docs/pictures/draw.py` draws them, and a page shows each of them. The charts of `make bench` can be
//! read like these pictures.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cluster::{Scratch, assert_caught, command, ensure, output, repository, texts_of};

/// The folder with the charts, in a folder for each version of PostgreSQL.
const CHARTS: &str = "bench/results";

/// The smallest size of type, in pixels.
const TYPE: f64 = 14.0;

/// The folder that contains the pictures.
const PICTURES: &str = "docs/pictures";

/// Returns the content of each picture in a folder, by name.
fn pictures(folder: &Path) -> BTreeMap<String, String> {
    let paths = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let pictures = paths.filter(|path| path.extension().is_some_and(|extension| extension == "svg"));
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        (name, fs::read_to_string(path).expect("a picture can be read"))
    };
    pictures.map(read).collect()
}

/// Checks that the committed pictures are the same as those that the script draws.
fn check_drawn(committed: &BTreeMap<String, String>, drawn: &BTreeMap<String, String>) -> Result<(), String> {
    let (kept, new) = (committed.keys(), drawn.keys());
    ensure!(kept.clone().eq(new.clone()), "{new:?} are drawn, {kept:?} are in {PICTURES}");
    for (name, svg) in committed {
        ensure!(*svg == drawn[name], "{name} is not as it is drawn: run {PICTURES}/draw.py");
    }
    Ok(())
}

/// Checks that a picture can be read in both colour schemes and by a screen reader, and that it loads nothing.
fn check_picture(name: &str, svg: &str) -> Result<(), String> {
    for part in ["<title id=", "<desc id=", "viewBox=", "@media (prefers-color-scheme:dark)", "font-family:sans-serif"]
    {
        ensure!(svg.contains(part), "{name} has no {part}");
    }
    for part in ["href", "url(", "@import", "<script", "<image"] {
        ensure!(!svg.contains(part), "{name} has {part}");
    }
    Ok(())
}

/// Checks that a chart can be read like a picture, that its type is large enough, and that it has no bars if the axis of their length is
/// logarithmic.
fn check_chart(name: &str, svg: &str) -> Result<(), String> {
    check_picture(name, svg)?;
    for rest in svg.split("font-size:").skip(1) {
        let size = rest.split("px").next().and_then(|size| size.parse::<f64>().ok());
        ensure!(size.is_some_and(|size| size >= TYPE), "{name} has type of {size:?} pixels");
    }
    let between = |from: &str, to: &str| svg.split_once(from).and_then(|(_, rest)| rest.split(to).next());
    let title = between("<title id=\"title\">", "<").unwrap_or_default();
    ensure!(!title.is_empty() && !title.contains("()"), "{name} has the title {title:?}");
    let values = between("<desc id=\"description\">", " by ").unwrap_or_default();
    // The background is a rectangle, too.
    let bars = svg.matches("<rect").count() - 1;
    ensure!(!values.ends_with("logarithmic axis") || bars == 0, "{name} has {bars} bars on a logarithmic axis");
    Ok(())
}

/// Checks that one of the pages shows a picture.
fn check_shown(name: &str, pages: &[(PathBuf, String)]) -> Result<(), String> {
    ensure!(pages.iter().any(|(_, page)| page.contains(&format!("pictures/{name})"))), "no page shows {name}");
    Ok(())
}

/// Returns the README and the pages in `docs/`.
fn pages() -> Vec<(PathBuf, String)> {
    texts_of(&["docs", "README.md"], ".md")
}

#[test]
fn every_picture_is_as_the_script_draws_it() {
    let scratch = Scratch::new("pictures");
    output(command("python3").arg(repository().join(PICTURES).join("draw.py")).arg(&scratch.0));
    let (committed, drawn) = (pictures(&repository().join(PICTURES)), pictures(&scratch.0));
    check_drawn(&committed, &drawn).unwrap();
    for (name, svg) in &committed {
        check_picture(name, svg).unwrap();
    }
}

#[test]
fn every_picture_is_shown_by_a_page() {
    let pages = pages();
    for name in pictures(&repository().join(PICTURES)).keys() {
        check_shown(name, &pages).unwrap();
    }
}

#[test]
fn every_chart_can_be_read() {
    let charts = texts_of(&[CHARTS], ".svg");
    assert!(charts.len() > 20, "{} charts", charts.len());
    for (path, svg) in charts {
        check_chart(&path.to_string_lossy(), &svg).unwrap();
    }
}

#[test]
fn a_chart_that_is_hard_to_read_is_caught() {
    let charts = texts_of(&[CHARTS], ".svg");
    let chart = |name: &str| &charts.iter().find(|(path, _)| path.ends_with(name)).expect("a chart").1;
    let (dots, bars) = (chart("cost-id.svg"), chart("storage-index.svg"));
    assert_caught(check_chart("dots", &dots.replace("14px", "11px")), "type of Some(11.0) pixels");
    assert_caught(check_chart("dots", &dots.replace("Cost of an ID", "SELECT f()")), "has the title");
    assert_caught(check_chart("dots", &dots.replace("prefers-color-scheme", "any")), "has no @media");
    let logarithmic = bars.replace(" by key.", ", logarithmic axis by key.");
    assert_caught(check_chart("bars", &logarithmic), "bars on a logarithmic axis");
}

#[test]
fn a_picture_that_was_edited_is_caught() {
    let committed = pictures(&repository().join(PICTURES));
    let mut edited = committed.clone();
    edited.values_mut().for_each(|svg| *svg = svg.replacen("<title", "<title ", 1));
    assert_caught(check_drawn(&edited, &committed), "is not as it is drawn");
    edited.pop_first();
    assert_caught(check_drawn(&edited, &committed), "are drawn");
    let (name, svg) = committed.first_key_value().expect("a picture");
    assert_caught(check_picture(name, &svg.replace("<title", "<text")), "has no <title");
    assert_caught(check_picture(name, &svg.replace("<path", "<image")), "has <image");
    assert_caught(check_shown("none.svg", &pages()), "no page shows none.svg");
}
