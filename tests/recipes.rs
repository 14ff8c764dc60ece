//! docs/configuration.md, typed: every server has its own worker ID, and keeps it when a standby takes over, when a server is
//! rewound, and where servers replicate to each other.

#[path = "recipes/alter_system.rs"]
mod alter_system;
#[path = "recipes/command_line.rs"]
mod command_line;
#[path = "recipes/logical.rs"]
mod logical;
#[path = "recipes/page.rs"]
mod page;
#[path = "recipes/streaming.rs"]
mod streaming;

/// The tests of each section are its module's.
#[test]
fn every_section_with_blocks_is_tested() {
    let tested = [
        "Giving every server its worker ID",
        "From the host name or the environment",
        "By ALTER SYSTEM",
        "Streaming replication",
        "On the command line instead",
        "Logical replication",
        "Both ways",
    ];
    assert_eq!(page::Recipe::titles(), tested);
}
