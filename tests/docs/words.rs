//! Pages, messages and comments of SQL objects do without the expressions for which PostgreSQL's manual has a plainer word.

use cluster::{assert_caught, ensure, texts_of};

/// An expression, and what to write instead.
const PLAINER: [(&str, &str); 10] = [
    ("give out", "issue, assign or grant"),
    ("gives out", "issues, assigns or grants"),
    ("given out", "issued, assigned or granted"),
    ("begin again", "restart"),
    ("begins again", "restarts"),
    ("try again", "retry"),
    ("tries again", "retries"),
    ("there twice", "duplicate"),
    ("anew", "again"),
    ("whoever", "the name of the subject"),
];

/// Whether a text does without these expressions, also if a line ends within one.
fn check(path: &str, text: &str) -> Result<(), String> {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '\'').collect();
    let text = format!(" {} ", words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "));
    for (expression, plainer) in PLAINER {
        let found = text.to_lowercase().contains(&format!(" {expression} "));
        ensure!(!found, "{path} has \"{expression}\": write {plainer}");
    }
    Ok(())
}

#[test]
fn pages_and_messages_use_plain_words() {
    let pages = texts_of(&["README.md", "SECURITY.md", "docs"], ".md");
    let sql = texts_of(&["registry", "portable", "sql"], ".sql").into_iter();
    // A release that is frozen keeps its words.
    let sql = sql.filter(|(path, _)| !path.to_string_lossy().contains("--0."));
    let texts: Vec<_> = pages.into_iter().chain(sql).chain(texts_of(&["src/message"], ".rs")).collect();
    assert!(texts.len() > 80, "{} texts", texts.len());
    texts.iter().try_for_each(|(path, text)| check(&path.to_string_lossy(), text)).unwrap();
}

#[test]
fn an_expression_that_is_not_plain_is_caught() {
    check("a page", "A number is issued. The reader may try it again.").unwrap();
    assert_caught(check("a page", "A number is given\nout."), "\"given out\": write issued");
    assert_caught(check("a page", "Try again."), "\"try again\": write retry");
}
