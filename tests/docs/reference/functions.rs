//! docs/functions.md and the catalog: names, signatures, volatility, parallel safety, and who can call a function.

use std::collections::BTreeSet;

use cluster::{Cluster, assert_caught, blocks, ensure, page, texts_of};

use super::{check_changelog, check_names};

/// The path of the page.
const PAGE: &str = "docs/functions.md";

/// What the catalog contains about one form of a function.
struct Function {
    name: String,
    arguments: String,
    result: String,
    volatility: String,
    parallel: String,
    callers: String,
    /// The comment on the function, which `\df+` shows.
    comment: Option<String>,
    /// True if a view shows the function's result. In this case, the page describes the view.
    behind_a_view: bool,
}

/// The functions and the views of the extension.
struct Catalog {
    functions: Vec<Function>,
    /// The name of each view, and the roles that can read it.
    views: Vec<(String, String)>,
}

fn catalog(name: &str) -> Catalog {
    let server = Cluster::builder(name).start();
    let mut session = server.session();
    // The roles that have a privilege, in the words of the page.
    let who = |kind: &str, right: &str| {
        format!(
            "CASE WHEN has_{kind}_privilege('public', o.oid, '{right}') THEN 'Any role'
                  WHEN has_{kind}_privilege('pg_monitor', o.oid, '{right}') THEN 'Members of `pg_monitor`' ELSE 'Superusers' END"
        )
    };
    let member =
        "JOIN pg_depend AS d ON d.objid = o.oid AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
                  JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'snowflake_pg'";
    let functions = format!(
        "SELECT o.proname::text, pg_get_function_arguments(o.oid), pg_get_function_result(o.oid),
                CASE o.provolatile WHEN 'v' THEN 'VOLATILE' WHEN 's' THEN 'STABLE' ELSE 'IMMUTABLE' END,
                CASE o.proparallel WHEN 's' THEN 'PARALLEL SAFE' WHEN 'r' THEN 'PARALLEL RESTRICTED'
                                   ELSE 'PARALLEL UNSAFE' END, {}, obj_description(o.oid, 'pg_proc'),
                EXISTS (SELECT FROM pg_depend AS v WHERE v.refobjid = o.oid AND v.classid = 'pg_rewrite'::regclass)
         FROM pg_proc AS o {member} AND d.classid = 'pg_proc'::regclass",
        who("function", "EXECUTE")
    );
    let views = format!(
        "SELECT o.relname::text, {} FROM pg_class AS o {member} AND d.classid = 'pg_class'::regclass AND o.relkind = 'v'",
        who("table", "SELECT")
    );
    let functions = session.query(&functions, &[]).expect("functions").into_iter().map(|row| Function {
        name: row.get(0),
        arguments: row.get(1),
        result: row.get(2),
        volatility: row.get(3),
        parallel: row.get(4),
        callers: row.get(5),
        comment: row.get(6),
        behind_a_view: row.get(7),
    });
    let functions = functions.collect();
    let views = session.query(&views, &[]).expect("views").into_iter().map(|row| (row.get(0), row.get(1))).collect();
    Catalog { functions, views }
}

/// Returns a signature with the catalog's spacing and the manual's types.
fn tight(signature: &str) -> String {
    let mut text = signature.split_whitespace().collect::<Vec<_>>().join(" ");
    for (long, short) in [
        ("timestamp with time zone", "timestamptz"),
        ("SETOF ", "setof "),
        ("TABLE(", "setof record("),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" ,", ","),
    ] {
        text = text.replace(long, short);
    }
    text
}

/// Returns all forms of a signature on the page, with and without each part in brackets.
fn written(signature: &str) -> Vec<String> {
    let text = signature.replace("[]", "\u{0}");
    let Some(open) = text.find('[') else {
        return vec![tight(&text.replace('\u{0}', "[]"))];
    };
    let mut depth = 0;
    let close = text[open..].find(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        depth == 0
    });
    let close = open + close.expect("a closing bracket");
    let (head, inner, tail) = (&text[..open], &text[open + 1..close], &text[close + 1..]);
    let with = |optional: &str| written(&format!("{head}{optional}{tail}").replace('\u{0}', "[]"));
    [with(""), with(inner)].concat()
}

/// Returns all forms of a function, with and without each argument that has a default.
fn callable(function: &Function) -> Vec<String> {
    let all: Vec<&str> = function.arguments.split(", ").filter(|argument| !argument.is_empty()).collect();
    let returned: Vec<&str> = all.iter().filter_map(|argument| argument.strip_prefix("OUT ")).collect();
    let result = match returned[..] {
        [] => function.result.clone(),
        _ => format!("{} ({})", function.result, returned.join(", ")),
    };
    let mut forms = vec![Vec::new()];
    for argument in all.into_iter().filter(|argument| !argument.starts_with("OUT ")) {
        let Some((argument, default)) = argument.split_once(" DEFAULT ") else {
            forms.iter_mut().for_each(|form| form.push(argument.to_string()));
            continue;
        };
        let value = default.split("::").next().expect("a value");
        let with = |form: &Vec<String>| [&form[..], &[format!("{argument} DEFAULT {value}")]].concat();
        forms = forms.iter().flat_map(|form| [form.clone(), with(form)]).collect();
    }
    forms.iter().map(|form| tight(&format!("{} ({}) → {result}", function.name, form.join(", ")))).collect()
}

fn check(page: &str, catalog: &Catalog) -> Result<(), String> {
    let mut names: Vec<&str> = catalog.functions.iter().map(|function| function.name.as_str()).collect();
    names.extend(catalog.views.iter().map(|(view, _)| view.as_str()));
    names.sort_unstable();
    names.dedup();
    for (title, text) in check_names(page, &names)? {
        let prose = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((_, readers)) = catalog.views.iter().find(|(view, _)| view == title) {
            ensure!(prose.contains(&format!("{readers} can read it")), "{title}: {readers} can read it");
            continue;
        }
        let forms: Vec<&Function> = catalog.functions.iter().filter(|function| function.name == title).collect();
        if let Some(function) = forms.iter().find(|function| function.behind_a_view) {
            let callers = &function.callers;
            ensure!(prose.contains(&format!("{callers} can call it")), "{title}: {callers} can call it");
            continue;
        }
        // An indented line continues the line above it.
        let shown = blocks(text, "signature").concat().replace("\n ", " ");
        let shown: BTreeSet<String> = shown.lines().flat_map(written).collect();
        let known: BTreeSet<String> = forms.iter().flat_map(|function| callable(function)).collect();
        ensure!(shown == known, "{title} has the signatures {known:#?}, not {shown:#?}");
        let said = text.split("\n\n").find(|paragraph| paragraph.contains("`PARALLEL ")).unwrap_or_default();
        for (words, of) in [
            (&["VOLATILE", "STABLE", "IMMUTABLE"][..], (|function| &function.volatility) as fn(&Function) -> &String),
            (&["PARALLEL SAFE", "PARALLEL RESTRICTED", "PARALLEL UNSAFE"], |function| &function.parallel),
            (&["Any role", "Superusers"], |function| &function.callers),
        ] {
            for word in words {
                let is = forms.iter().any(|function| of(function) == word);
                ensure!(said.contains(word) == is, "{title}: {word} is {is}, the page says {said:?}");
            }
        }
    }
    Ok(())
}

/// Returns the functions that users call, and those of triggers, without the functions of the views and of COPY.
fn used(catalog: &Catalog) -> impl Iterator<Item = &Function> {
    catalog.functions.iter().filter(|function| !function.behind_a_view && !function.name.contains("_copy_"))
}

/// Returns the names that users need: of functions, except those of triggers, and of views.
fn names(catalog: &Catalog) -> Vec<&str> {
    let functions = used(catalog).filter(|function| function.result != "trigger").map(|function| &function.name);
    functions.chain(catalog.views.iter().map(|(view, _)| view)).map(String::as_str).collect()
}

/// Returns the tests, except the lists of all functions, which do not look at the results.
fn tests() -> String {
    let lists = ["generator/largest.rs", "server/preload.rs", "reference/functions.rs"];
    let texts = [".sql", ".rs"].into_iter().flat_map(|ending| texts_of(&["tests"], ending));
    texts.filter(|(path, _)| !lists.iter().any(|list| path.ends_with(list))).map(|(_, text)| text).collect()
}

/// Checks that one of the tests calls each function.
fn check_called(catalog: &Catalog, tests: &str) -> Result<(), String> {
    let uncalled: BTreeSet<&str> = used(catalog)
        .map(|function| function.name.as_str())
        .filter(|name| !tests.contains(&format!("{name}(")))
        .collect();
    ensure!(uncalled.is_empty(), "no file in tests/pg_regress/sql and no other test calls {uncalled:?}");
    Ok(())
}

fn check_comments(catalog: &Catalog) -> Result<(), String> {
    match catalog.functions.iter().find(|function| function.comment.is_none()) {
        Some(function) => Err(format!("sql/comments.sql contains no comment on {}", function.name)),
        None => Ok(()),
    }
}

#[test]
fn every_function_is_described_as_it_is() {
    let catalog = catalog("reference_functions");
    assert!(catalog.functions.len() > 30 && catalog.views.len() == 5);
    let described = check(&page(PAGE), &catalog).map_err(|reason| format!("{PAGE}: {reason}"));
    let named = check_changelog(&page("CHANGELOG.md"), &names(&catalog));
    let called = check_called(&catalog, &tests());
    let wrong: Vec<String> =
        [check_comments(&catalog), described, named, called].into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_function_that_is_described_wrongly_is_caught() {
    let (page, mut catalog) = (page(PAGE), catalog("reference_functions_wrong"));
    for (was, is, reason) in [
        ("\n### snowflake_reserve\n", "\n", "snowflake_reserve has 0 sections"),
        ("\n### snowflake_status\n", "\n", "snowflake_status has 0 sections"),
        ("\n## Views\n", "\n### snowflake_block\n\n## Views\n", "snowflake_block does not exist"),
        ("[`snowflake_decode`](#snowflake_decode)", "`snowflake_decode`", "no table links to snowflake_decode"),
        ("reserve ( count integer", "reserve ( count bigint", "snowflake_reserve has the signatures"),
        ("( count integer ) → setof", "( count integer ) →", "snowflake_nextval_batch has the signatures"),
        ("[, workers integer[] DEFAULT NULL ]", "", "snowflake_check has the signatures"),
        ("key text DEFAULT 'id'", "key text DEFAULT 'key'", "snowflake_check has the signatures"),
        (
            "layout text [, epoch timestamptz ] )",
            "layout text, epoch timestamptz )",
            "snowflake_encode has the signatures",
        ),
        ("`PARALLEL RESTRICTED`", "`PARALLEL SAFE`", "snowflake_currval: PARALLEL SAFE is false"),
        ("`VOLATILE`, `PARALLEL SAFE`", "`STABLE`, `PARALLEL SAFE`", "snowflake_nextval: VOLATILE is true"),
        ("`STABLE`, or `IMMUTABLE` with", "`STABLE` with", "snowflake_decode: IMMUTABLE is true"),
        ("Superusers can call it", "Any role can call it", "snowflake_segment_nextval: Any role is false"),
        ("Any role can read it", "Superusers can read it", "snowflake_layouts: Any role can read it"),
        ("Members of `pg_monitor` can call", "Any role can call", "snowflake_last_issuer: Members of `pg_monitor` can"),
    ] {
        assert!(page.contains(was), "{was}");
        assert_caught(check(&page.replacen(was, is, 1), &catalog), reason);
    }
    let changelog = cluster::page("CHANGELOG.md").replace("`snowflake_reserve", "`snowflake_block");
    assert_caught(check_changelog(&changelog, &names(&catalog)), "does not name [\"snowflake_reserve\"]");
    let tests = tests().replace("snowflake_to_uuid(", "to_uuid(");
    assert_caught(check_called(&catalog, &tests), "calls {\"snowflake_to_uuid\"}");
    catalog.functions[0].comment = None;
    assert_caught(check_comments(&catalog), &format!("no comment on {}", catalog.functions[0].name));
}
