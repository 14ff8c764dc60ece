//! Types the blocks of docs/pglogical.md. Nodes that replicate to each other with pglogical insert rows into the same table at the same
//! time. With different worker IDs, each row arrives at each node.

mod home;
mod mesh;
mod nodes;
mod repair;
mod twins;

use cluster::Recipe;

/// The tests of a section type all of its blocks.
#[test]
fn every_section_with_blocks_is_tested() {
    let tested = [
        "Set up three nodes",
        "Without a registry",
        "Create further tables",
        "Add a node",
        "What happens if two nodes have the same worker ID",
        "The guard",
        "Repair two nodes that have the same worker ID",
    ];
    assert_eq!(Recipe::titles(nodes::PAGE), tested);
}
