//! docs/hazards.md names tests that exist, and has a row for each promise, function and setting.

mod names;
mod quotes;
mod tests;

/// The path of the page.
const PAGE: &str = "docs/hazards.md";

/// A row of a table.
struct HazardRow {
    /// The heading above the table.
    section: String,
    /// The first column.
    claim: String,
    /// The files in the last column, each with the functions named after it.
    files: Vec<(String, Vec<String>)>,
}

/// Returns all rows of all tables on the page.
fn rows(page: &str) -> Result<Vec<HazardRow>, String> {
    let (mut section, mut in_table, mut found) = (String::new(), false, Vec::new());
    for line in page.lines() {
        if line.starts_with('#') {
            section = line.trim_start_matches('#').trim().into();
        }
        if !line.starts_with('|') {
            in_table = false;
        } else if line.starts_with("| ---") {
            in_table = true;
        } else if in_table {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let mut files: Vec<(String, Vec<String>)> = Vec::new();
            for name in cells[cells.len() - 1].split('`').skip(1).step_by(2) {
                match (name.contains('/'), files.last_mut()) {
                    (true, _) => files.push((name.into(), Vec::new())),
                    (false, Some((_, functions))) => functions.push(name.into()),
                    (false, None) => return Err(format!("{name} is named before any file: {line}")),
                }
            }
            found.push(HazardRow { section: section.clone(), claim: cells[0].into(), files });
        }
    }
    Ok(found)
}
