//! The pages: what they tell a reader to type does what they say.

mod bad_day;
mod configuration;
mod faq;
mod hazards;
mod migration;
mod monitoring;
mod pages;
mod queries;
mod restore;
