//! Tests of the pages: the commands that the pages tell a reader to type do what the pages say.

mod bad_day;
mod conceal;
mod conceal_endpoint;
mod configuration;
mod decoder;
mod definers;
mod duplicates;
mod errors;
mod faq;
mod fleet;
mod hazards;
mod incidents;
mod links;
mod migration;
mod missing_mark;
mod monitoring;
mod named_pages;
mod pages;
mod pg_partman;
mod pictures;
mod queries;
mod reference;
mod restore;
mod sections;
mod site;
mod time_ordered_keys;
