//! The pictures on the pages are as `docs/pictures/draw.py` draws them, and a page shows each of them.

use std::fs;
use std::path::{Path, PathBuf};

use cluster::{Scratch, assert_caught, command, ensure, output, repository, texts_of};

/// The folder that contains the pictures.
const PICTURES: &str = "docs/pictures";

/// Returns the name and the content of each picture in a folder.
fn pictures(folder: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "svg")).collect();
    found.sort();
    let read = |path: &PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        (name, fs::read_to_string(path).expect("a picture can be read"))
    };
    found.iter().map(read).collect()
}

/// Checks that the committed pictures are the same as those that the script draws.
fn check_drawn(committed: &[(String, String)], drawn: &[(String, String)]) -> Result<(), String> {
    let names = |pictures: &[(String, String)]| pictures.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    ensure!(names(committed) == names(drawn), "{:?} are drawn, {:?} are in {PICTURES}", names(drawn), names(committed));
    for ((name, committed), (_, drawn)) in committed.iter().zip(drawn) {
        ensure!(committed == drawn, "{name} is not as it is drawn: run {PICTURES}/draw.py");
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

/// Checks that one of the pages shows a picture.
fn check_shown(name: &str, pages: &[String]) -> Result<(), String> {
    ensure!(pages.iter().any(|page| page.contains(&format!("pictures/{name})"))), "no page shows {name}");
    Ok(())
}

/// Returns the text of the README and of the pages in `docs/`.
fn pages() -> Vec<String> {
    texts_of(&["docs", "README.md"], ".md").into_iter().map(|(_, text)| text).collect()
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
    for (name, _) in pictures(&repository().join(PICTURES)) {
        check_shown(&name, &pages).unwrap();
    }
}

#[test]
fn a_picture_that_was_edited_is_caught() {
    let committed = pictures(&repository().join(PICTURES));
    let mut edited = committed.clone();
    edited[0].1 = edited[0].1.replacen("<title", "<title ", 1);
    assert_caught(check_drawn(&edited, &committed), "is not as it is drawn");
    edited.remove(0);
    assert_caught(check_drawn(&edited, &committed), "are drawn");
    let (name, svg) = &committed[0];
    assert_caught(check_picture(name, &svg.replace("<title", "<text")), "has no <title");
    assert_caught(check_picture(name, &svg.replace("<path", "<image")), "has <image");
    assert_caught(check_shown("none.svg", &pages()), "no page shows none.svg");
}
