//! Answers that no registry sends.

use cluster::Stop;

use crate::fake::{Fake, message, one_column, row};
use crate::fleet::{server, wait_for_log};

/// Starts a server whose registry is a server that sends other answers.
fn check_fake(name: &str, answer: Vec<u8>, endless: bool, message: &str, detail: &str) {
    let fake = Fake::start(&format!("{name}_fake"), answer, endless);
    let mut server = server(name, &fake.string()).start();
    wait_for_log(&server, &format!("heartbeat failed: {message}"));
    let log = server.log();
    assert!(log.contains(detail), "{log}");
    assert!(log.lines().all(|line| line.len() < 2_000), "a line of the log is too long");
    assert_eq!(log.matches("terminated by signal").count(), 0, "{log}");
    server.stop(Stop::Fast);
}

#[test]
fn an_answer_that_no_registry_sends_is_an_error() {
    let begin = [message(b'1', b""), message(b'2', b""), message(b'n', b"")].concat();
    let silent = "the registry did not answer";
    for kind in *b"GH" {
        let copy = [begin.clone(), message(kind, &[0; 3])].concat();
        check_fake(
            &format!("fleet_copy_{kind}"),
            copy,
            false,
            silent,
            "the server started a COPY instead of returning a row",
        );
    }
    let end = [message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat();
    let long = [one_column(), row(200_000, 200_000), end].concat();
    check_fake("fleet_long", long, false, silent, "its row is too long");
    let unlimited = [one_column(), row(1 << 29, 0)].concat();
    check_fake("fleet_unlimited", [unlimited, vec![b'x'; 1 << 20]].concat(), true, silent, "the answer is longer than");
    let many = [begin, message(b'C', b"SELECT 1\0").repeat(10_000)].concat();
    check_fake("fleet_many", many, true, silent, "the answer is longer than");
    let text = [b"SERROR\0VERROR\0CXX000\0M".as_slice(), &[b'x'; 100_000], b"\0\0"].concat();
    let error = [message(b'E', &text), message(b'Z', b"I")].concat();
    check_fake("fleet_long_error", error, false, "the registry raised an error: xxx", "The SQLSTATE is XX000");
}

/// Returns a row that no registry sends, with a warning of this function of the server.
fn warning_of(function: &str) -> Vec<u8> {
    let fields = ["SWARNING", "VWARNING", "C01000", "Mdatabase must be vacuumed", &format!("R{function}"), ""];
    let notice: Vec<u8> = fields.iter().flat_map(|field| field.bytes().chain([0])).collect();
    let end = [message(b'N', &notice), message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat();
    [one_column(), row(3, 3), end].concat()
}

/// Only a warning that means that the answer can be lost keeps the server from using the answer.
#[test]
fn a_database_that_must_be_vacuumed_answers_as_others() {
    let used = "unexpected response from the registry";
    check_fake("fleet_vacuum", warning_of("GetNewTransactionId"), false, used, "The response was: xxx, null.");
    let unused = "the registry answered with a warning: database must be vacuumed";
    check_fake("fleet_cancelled", warning_of("SyncRepWaitForLSN"), false, unused, "so the server does not use it");
}

#[test]
fn a_login_without_an_end_is_an_error() {
    let fake = Fake::chatty("fleet_chatty_fake");
    let mut server = server("fleet_chatty", &format!("{} connect_timeout=60", fake.string())).start();
    wait_for_log(&server, "heartbeat failed: cannot connect to the registry");
    assert!(server.log().contains("the answer is longer than"), "{}", server.log());
    server.stop(Stop::Fast);
}
