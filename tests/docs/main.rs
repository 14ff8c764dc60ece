//! The pages: what they tell a reader to type does what they say.

mod bad_day;
mod configuration;
mod decoder;
mod duplicates;
mod errors;
mod faq;
mod hazards;
mod links;
mod migration;
mod missing_mark;
mod monitoring;
mod pages;
mod pictures;
mod queries;
mod reference;
mod restore;
mod site;
