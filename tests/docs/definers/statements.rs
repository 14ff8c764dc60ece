//! The statements of a script, as far as the checks of functions read them.

/// A statement.
pub struct PageStatement {
    /// The statement as it is written.
    pub text: String,
    /// The statement in upper case, with single spaces, and without comments and the text of its strings.
    shape: String,
    /// The number of the transaction. A statement outside of BEGIN and COMMIT has a transaction of its own.
    pub transaction: usize,
}

/// Splits a script into its statements.
pub fn statements(script: &str) -> Vec<PageStatement> {
    let mut found: Vec<PageStatement> = Vec::new();
    let (mut transaction, mut inside) = (1, false);
    for (text, shape) in split(script) {
        match shape.as_str() {
            "BEGIN" => inside = true,
            "COMMIT" => inside = false,
            _ => {}
        }
        if !inside {
            transaction += 1;
        }
        found.push(PageStatement { text, shape, transaction });
    }
    found
}

/// Returns the text and the shape of each statement.
fn split(script: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let (mut text, mut code) = (String::new(), String::new());
    let mut rest = script;
    while let Some(first) = rest.chars().next() {
        // The end of a piece whose characters do not count: a comment, a string, or a body between dollar signs.
        let end = |rest: &str, close: &str, open: usize| {
            rest[open..].find(close).map_or(rest.len(), |at| open + at + close.len())
        };
        let tag = rest[1..].find('$').map(|at| &rest[..at + 2]).filter(|_| first == '$');
        let (length, counts) = match tag {
            _ if rest.starts_with("--") => (end(rest, "\n", 0), false),
            _ if first == '\'' => (end(rest, "'", 1), false),
            Some(tag) if tag[1..tag.len() - 1].chars().all(|c| c.is_alphanumeric() || c == '_') => {
                (end(rest, tag, tag.len()), false)
            }
            _ => (first.len_utf8(), true),
        };
        let (piece, after) = rest.split_at(length);
        rest = after;
        if piece == ";" {
            found.push((std::mem::take(&mut text), shape(&std::mem::take(&mut code))));
            continue;
        }
        text.push_str(piece);
        code.push_str(if counts { piece } else { " " });
    }
    found.push((text, shape(&code)));
    found.retain(|(_, shape)| !shape.is_empty());
    found
}

fn shape(code: &str) -> String {
    code.to_uppercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

impl PageStatement {
    /// Returns true if the statement contains these words, which are in upper case, outside of strings.
    pub fn has(&self, words: &str) -> bool {
        self.shape.contains(words)
    }

    /// Returns the name of the function that the statement creates.
    pub fn function(&self) -> Option<String> {
        let rest = self.shape.strip_prefix("CREATE ")?;
        let rest = rest.strip_prefix("OR REPLACE ").unwrap_or(rest);
        let name = rest.strip_prefix("FUNCTION ").or_else(|| rest.strip_prefix("PROCEDURE "))?.split('(').next()?;
        Some(name.trim().to_lowercase())
    }

    /// Returns true if the names in the body of the function do not depend on the caller: they are bound when the function is created, or
    /// `search_path` begins with PostgreSQL's own objects and ends with the temporary objects of the session.
    pub fn has_safe_names(&self) -> bool {
        let Some((_, path)) = self.shape.split_once("SET SEARCH_PATH = ") else {
            return self.has(" RETURN ") || self.has(" BEGIN ATOMIC ");
        };
        let ends = [" SET ", " AS", " RETURN "].iter().filter_map(|end| path.find(end));
        let path = &path[..ends.min().unwrap_or(path.len())];
        path.starts_with("PG_CATALOG, ") && path.ends_with(", PG_TEMP")
    }

    /// Returns true if the statement takes the privilege to execute this function from PUBLIC.
    pub fn closes(&self, name: &str) -> bool {
        let revokes = ["EXECUTE", "ALL"].iter().any(|what| self.shape.starts_with(&format!("REVOKE {what} ON ")));
        revokes && self.shape.ends_with(" FROM PUBLIC") && self.names(name)
    }

    /// Returns true if the statement grants a privilege on this function to PUBLIC.
    pub fn opens(&self, name: &str) -> bool {
        self.shape.starts_with("GRANT ") && self.shape.ends_with(" TO PUBLIC") && self.names(name)
    }

    /// Returns true if a statement about privileges names this function, or all functions of its schema.
    fn names(&self, name: &str) -> bool {
        let name = name.to_uppercase();
        let schema = name.split_once('.').map_or("PUBLIC", |(schema, _)| schema);
        let mut words = self.shape.split([' ', ',', '(']);
        self.has(&format!(" ALL FUNCTIONS IN SCHEMA {schema} "))
            || self.has(" ON FUNCTION ") && words.any(|word| word == name)
    }
}
