//! Types the blocks of docs/pglogical.md. Nodes that replicate to each other with pglogical insert rows into the same table at the same
//! time. With different worker IDs, each row arrives at each node.

mod mesh;
mod nodes;
mod repair;
mod returning_rows;
mod twins;
