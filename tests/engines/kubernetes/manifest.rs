//! The parts of a manifest that PostgreSQL reads. This is not a parser of YAML: it knows the forms that the page uses.

/// The lines below a key, up to the next line that is not indented further. `key` is the first of its name.
fn below<'a>(manifest: &'a str, key: &str) -> Vec<&'a str> {
    let mut lines = manifest.lines().skip_while(|line| line.trim() != format!("{key}:"));
    let first = lines.next().unwrap_or_else(|| panic!("the manifest has no {key}"));
    let depth = indent(first);
    lines.take_while(|line| indent(line) > depth).collect()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The elements of the list below a key.
pub fn list(manifest: &str, key: &str) -> Vec<String> {
    let element = |line: &str| line.trim().strip_prefix("- ").expect("an element of the list").to_string();
    below(manifest, key).into_iter().map(element).collect()
}

/// The parameters of PostgreSQL. A value is on the line of its name, or in a block of lines that are joined by spaces.
pub fn parameters(manifest: &str) -> Vec<(String, String)> {
    let lines = below(manifest, "parameters");
    let depth = indent(lines.first().expect("a parameter"));
    let mut found: Vec<(String, String)> = Vec::new();
    for line in lines {
        if indent(line) > depth {
            let value = &mut found.last_mut().expect("a parameter").1;
            *value = format!("{value} {}", line.trim()).trim().to_string();
            continue;
        }
        let (name, value) = line.trim().split_once(": ").expect("a name and a value");
        found.push((name.into(), value.trim_matches('"').trim_start_matches(">-").into()));
    }
    found
}
