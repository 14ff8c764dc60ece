//! The SQL surface: every function and view, its output, and its plans.

mod check;
mod conceal;
mod copy;
mod decode;
mod discard;
mod encodings;
mod fuzz;
mod javascript;
mod layouts;
mod planner;
mod read_as_owner;
mod regress;
mod renamed_table;
mod search_path;
mod text;
mod time_queries;
mod vectors;
