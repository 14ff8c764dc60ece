//! Every vector of `tests/vectors.json`, which the core has written, with the SQL functions and in JavaScript. The SQL
//! that the decoder page shows makes the ID that the page shows.

mod compare;

use cluster::{Answer, Client, Cluster, Scratch, assert_caught, command, ensure, repository, typed};
use serde_json::Value;

use compare::{check_sql, vectors};

/// Returns the vectors with one ID changed.
fn wrong() -> String {
    let (right, wrong) = ("1541815603606036480\",\"created_at\"", "1541815603606036481\",\"created_at\"");
    let vectors = vectors();
    assert_eq!(vectors.matches(right).count(), 1);
    vectors.replace(right, wrong)
}

/// Runs the tests of `decoder/snowflake.mjs` on a file of vectors.
fn check_javascript(vectors: &str, name: &str) -> Result<(), String> {
    let scratch = Scratch::new(name);
    let file = scratch.write("vectors.json", vectors);
    let test = repository().join("decoder/test/vectors.test.mjs");
    let output = command("node").arg("--test").arg(test).env("VECTORS", file).output();
    let output = output.expect("node is installed (Debian: nodejs)");
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

#[test]
fn every_vector_is_right_in_sql() {
    let server = Cluster::builder("vectors").unset("snowflake_pg.worker_id").start();
    check_sql(&mut server.session(), &vectors()).unwrap();
    let outcome = check_sql(&mut server.connect(), &wrong());
    assert_caught(outcome, "the parts of an ID: 1 are wrong, the first is (2022-06-28T16:07:40.105Z,,378,1)");
}

#[test]
fn every_vector_is_right_in_javascript() {
    check_javascript(&vectors(), "vectors_javascript").unwrap();
    assert_caught(check_javascript(&wrong(), "vectors_javascript_wrong"), "1541815603606036481");
}

/// Prints for each vector the statements that the decoder page shows for it.
const STATEMENTS: &str = "
    const { decode, format } = await import(`${process.cwd()}/decoder/snowflake.mjs`);
    const { statements } = await import(`${process.cwd()}/decoder/sql.mjs`);
    const { toUuid } = await import(`${process.cwd()}/decoder/uuid.mjs`);
    const { ids } = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
    const shown = ids.map(({ id, layout, epoch, min_id, max_id }) => {
        const shape = format(layout, epoch);
        return { id, min_id, max_id, uuid: toUuid(BigInt(id)), ...statements(decode(id, shape), shape) };
    });
    process.stdout.write(JSON.stringify(shown));
";

/// Runs the statements that the page shows for each vector.
fn check_statements(session: &mut Client, program: &str) -> Result<(), String> {
    let mut node = command("node");
    let program = format!("(async () => {{ {program} }})()");
    node.current_dir(repository()).args(["-e", &program]);
    let shown: Vec<Value> = serde_json::from_str(&typed(node, &vectors())?).expect("JSON");
    session.run("CREATE TEMP TABLE orders (id bigint)");
    let (mut made, mut between) = (0, 0);
    for vector in &shown {
        let text = |name: &str| vector[name].as_str().unwrap_or_default();
        let number = |name: &str| text(name).parse::<i64>().expect("an ID");
        let (id, min, max) = (number("id"), number("min_id"), number("max_id"));
        let uuid: String = session.one(&format!("SELECT snowflake_to_uuid({id})::text"));
        ensure!(uuid == text("uuid"), "{} is not {uuid}, the UUID of {id}", text("uuid"));
        // Years that PostgreSQL does not have.
        if session.code(text("encode")).as_deref() == Some("22008") {
            continue;
        }
        made += 1;
        ensure!(session.one::<i64>(text("encode")) == id, "{} does not make {id}", text("encode"));
        let neighbours = format!("TRUNCATE orders; INSERT INTO orders VALUES ({min}), ({max}), ({min} - 1)");
        session.run(&neighbours);
        if max < i64::MAX {
            session.execute("INSERT INTO orders VALUES ($1)", &[&(max + 1)]).expect("a number can be inserted");
        }
        let mut queries = vec![text("instant")];
        if !text("between").is_empty() {
            queries.push(text("between"));
            between += 1;
        }
        for query in queries {
            let mut found = session.all::<i64>(query);
            found.sort_unstable();
            ensure!(found == [min, max], "{query} finds {found:?}, not {min} and {max}");
        }
    }
    ensure!(made > 400 && between > 40, "statements for {made} IDs, and {between} with snowflake_between");
    Ok(())
}

#[test]
fn the_sql_of_the_decoder_page_is_right() {
    let server = Cluster::builder("vectors_statements").start();
    check_statements(&mut server.session(), STATEMENTS).unwrap();
    let wrong = STATEMENTS.replace("decode(id, shape), shape", "decode(id, shape), format(layout)");
    assert_ne!(wrong, STATEMENTS);
    assert_caught(check_statements(&mut server.connect(), &wrong), "does not make");
}
