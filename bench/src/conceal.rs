//! The cost of concealing and revealing an ID compared with other ways to hide it: one session, one call a row.

use cluster::{Answer, Client};

use crate::effort::{alternate, rounds, scaled};
use crate::machine::Machine;
use crate::report::{BenchReport, Figure, group};
use crate::rivals::offers;
use crate::server::{self, timed};

/// The number of rounds.
const ROUNDS: usize = 25;
/// The number of calls in a turn.
const CALLS: u64 = 100_000;
/// The ID that the checks conceal.
const ID: i64 = 1_541_815_603_606_036_480;

/// The key, a function like those of docs/conceal.md, and hashids. For hashids, the alphabet is what the salt `this is my salt` makes
/// of the default alphabet. The original computes it once for a salt, so it is not part of the cost of a call.
const SETUP: &str = r"
CREATE TABLE id_keys (version integer PRIMARY KEY, key bytea NOT NULL);
INSERT INTO id_keys VALUES (1, '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f');
CREATE FUNCTION public_id(id bigint) RETURNS text LANGUAGE sql STABLE STRICT PARALLEL SAFE SECURITY DEFINER
    RETURN (SELECT version || '-' || snowflake_conceal_text(id, key, 'orders') FROM id_keys ORDER BY version DESC LIMIT 1);
CREATE FUNCTION order_of(public_id text) RETURNS bigint LANGUAGE sql STABLE STRICT PARALLEL SAFE SECURITY DEFINER
    RETURN (SELECT snowflake_reveal_text(split_part(public_id, '-', 2), key, 'orders') FROM id_keys
            WHERE version::text = split_part(public_id, '-', 1));
CREATE FUNCTION hashids(id bigint) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    alphabet text[] := string_to_array('5N6y2rljDQak4xgzn8ZR1oKYLmJpEbVq3OBv9WwXPMe7', NULL);
    size integer := cardinality(alphabet);
    lottery text := alphabet[id % 100 % size + 1];
    salt text[] := (string_to_array(lottery || 'this is my salt', NULL) || alphabet)[:size];
    swapped text;
    total integer := 0;
    at integer := 0;
    j integer;
    hidden text := '';
    code integer;
BEGIN
    FOR i IN REVERSE size - 1 .. 1 LOOP
        code := ascii(salt[at + 1]);
        total := total + code;
        j := (code + at + total) % i;
        swapped := alphabet[i + 1];
        alphabet[i + 1] := alphabet[j + 1];
        alphabet[j + 1] := swapped;
        at := (at + 1) % size;
    END LOOP;
    LOOP
        hidden := alphabet[id % size + 1] || hidden;
        id := id / size;
        EXIT WHEN id = 0;
    END LOOP;
    RETURN lottery || hidden;
END $$;
";

/// The key of all rivals except hashids.
const KEY: &str = r"'\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f'";

/// A way to hide an ID: its name, and an expression with the ID, or with what hides it, as `$`.
struct ConcealRival {
    name: &'static str,
    expression: String,
}

fn rival(name: &'static str, expression: &str) -> ConcealRival {
    ConcealRival { name, expression: expression.replace("KEY", KEY) }
}

/// Measures both directions.
pub fn run() -> BenchReport {
    let server = server::fresh("conceal").start();
    let mut client = server::session(&server);
    client.batch_execute(SETUP).expect("the rivals can be set up");
    let hashid: String = client.one(&format!("SELECT hashids({ID})"));
    assert_eq!(hashid, "9YZzpXmY753wa", "this is not what hashids makes of {ID}");
    let has_pgcrypto = offers(&mut client, "pgcrypto");
    if has_pgcrypto {
        client.batch_execute("CREATE EXTENSION pgcrypto").expect("pgcrypto can be created");
    }
    let mut conceal = vec![
        rival("snowflake_conceal_text()", "snowflake_conceal_text($, KEY, 'orders')"),
        rival("snowflake_conceal()", "snowflake_conceal($, KEY, 'orders')"),
        rival("SECURITY DEFINER function", "public_id($)"),
        rival("snowflake_to_text()", "snowflake_to_text($)"),
        rival("hashids in PL/pgSQL", "hashids($)"),
    ];
    let mut reveal = vec![
        rival("snowflake_reveal_text()", "snowflake_reveal_text(snowflake_to_text($), KEY, 'orders')"),
        rival("snowflake_reveal()", "snowflake_reveal($, KEY, 'orders')"),
        rival("SECURITY DEFINER function", "order_of('1-' || snowflake_to_text($))"),
        rival("snowflake_from_text()", "snowflake_from_text(snowflake_to_text($))"),
    ];
    if has_pgcrypto {
        conceal.push(rival("pgcrypto, hex", "encode(encrypt(int8send($), KEY, 'aes'), 'hex')"));
        conceal.push(rival("pgcrypto, base64", "encode(encrypt(int8send($), KEY, 'aes'), 'base64')"));
        let hidden: String = client.one(&format!("SELECT encode(encrypt(int8send({ID}), {KEY}, 'aes'), 'hex')"));
        let expression = "decrypt(CASE WHEN $ > 0 THEN decode('HIDDEN', 'hex') END, KEY, 'aes')";
        reveal.push(rival("pgcrypto, hex", &expression.replace("HIDDEN", &hidden)));
    }
    let figures = vec![
        figure(&mut client, &conceal, "cost of concealing an ID"),
        figure(&mut client, &reveal, "cost of revealing an ID"),
    ];
    let notes = [
        "the cost of a call is the time of `SELECT count(f(id, key)) FROM generate_series(..) AS id` minus the time \
         of the same query with a constant, in one session, with a key of 32 bytes",
        "the SECURITY DEFINER functions are those of docs/conceal.md, which read the key from a table",
        "hashids is an implementation of its encoding in PL/pgSQL, because no extension was available; it returns \
         the results of the original, and its alphabet is shuffled with the salt in advance",
        "pgcrypto is `encrypt(int8send(id), key, 'aes')`, which returns 16 bytes: 32 characters in hex and 24 in \
         base64; a concealed ID has 13 characters",
        "the functions that reveal text get the text of a number, so their cost includes `snowflake_to_text()`",
    ];
    BenchReport {
        part: "conceal".into(),
        machine: Machine::of(&mut client),
        notes: notes.map(String::from).to_vec(),
        figures,
    }
}

fn figure(client: &mut Client, rivals: &[ConcealRival], name: &str) -> Figure {
    let (rounds, calls) = (rounds(ROUNDS), scaled(CALLS));
    println!("==> {name}, {rounds} rounds");
    let sql = |expression: &str| {
        let expression = expression.replace('$', "id");
        format!("SELECT count({expression}) FROM generate_series({ID}, {ID} + {calls} - 1) AS id")
    };
    let [nanos] = alternate(rounds, rivals.len(), |n| {
        let difference = timed(client, &sql(&rivals[n].expression)) - timed(client, &sql("1"));
        [difference * 1e9 / calls as f64]
    });
    let names: Vec<_> = rivals.iter().map(|rival| rival.name).collect();
    Figure::new(name, "ns", &format!("{} calls", group(calls)), &names, &nanos)
}
