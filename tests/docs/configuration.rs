//! Types the blocks of docs/configuration.md. Every server has its own worker ID, and keeps it when a standby takes over, when a
//! server is rewound, and when servers replicate to each other.

mod alter_system;
mod command_line;
mod former_primary;
mod logical;
mod page;
mod single;
mod streaming;

/// The module of each section contains the section's tests.
#[test]
fn every_section_with_blocks_is_tested() {
    let tested = [
        "How do I give every server its worker ID?",
        "From the host name or the environment",
        "By ALTER SYSTEM",
        "Streaming replication",
        "On the command line instead",
        "Logical replication",
        "In both directions",
        "Guard the tables",
    ];
    assert_eq!(cluster::Recipe::titles(page::PAGE), tested);
}
