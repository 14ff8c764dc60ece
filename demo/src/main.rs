//! `make run` and `make run-fleet`: private servers that take orders whose keys are snowflakes.

mod copied_server;
mod fleet;
mod run;
mod run_fleet;
mod shop;

use std::process::ExitCode;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    let name = argument.as_deref().unwrap_or("run");
    let demonstration = match name {
        "run" => run::run,
        "run-fleet" => run_fleet::run,
        "stop" => stop,
        other => panic!("unknown argument {other}"),
    };
    // The panic itself has printed what is wrong.
    if std::panic::catch_unwind(demonstration).is_ok() {
        return ExitCode::SUCCESS;
    }
    // A fleet that was started only in part would go on without its witnesses.
    if name == "run-fleet" {
        fleet::stop();
    }
    println!("\n{name}: FAILED");
    ExitCode::FAILURE
}

fn stop() {
    match [run::stop(), fleet::stop()] {
        [false, false] => println!("stopped: no server was running"),
        _ => println!("stopped"),
    }
}
