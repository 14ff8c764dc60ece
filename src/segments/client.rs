//! A client for the registry's segments. It sends requests as SQL statements and parses the answers.

use std::ffi::CStr;
use std::time::Duration;

use flake::IdFormat;
use flake::fleet::{RegistryRefusal, Uuid};
use flake::segment_refill::{Reason, Rest, TakeAnswer, Taken};
use serde_json::Value;

use crate::message::registry::{RefusalFacts, Trouble};
use crate::pg::libpq::{Connection, ResultRow};
use crate::segments::facts::PeriodTag;

/// The statements. As in [`crate::fleet::call`], they do not depend on the search path.
const HELLO: &CStr = c"SELECT answer, reason, nonce FROM snowflake_registry.hello($1, $2, $3)";
const TAKE: &CStr =
    c"SELECT answer, reason, generation, first, count, step, max_step, EXTRACT(epoch FROM until) AS until \
                      FROM snowflake_registry.take($1, $2, $3, $4)";
const BEGIN: &CStr = c"SELECT answer, reason FROM snowflake_registry.begin_segment($1, $2, \
                       pg_catalog.to_timestamp($3::pg_catalog.float8), $4, $5, $6)";
const GIVE_BACK: &CStr = c"SELECT answer, reason FROM snowflake_registry.give_back($1, $2, $3, $4, $5, $6)";
const REPORT: &CStr =
    c"SELECT pg_catalog.json_agg(pg_catalog.json_build_array(answer, reason, tag)) FILTER (WHERE answer OPERATOR(pg_catalog.<>) 'current') \
      AS answers FROM snowflake_registry.report($1, $2, $3, $4)";

/// What the registry reports about this server's blocks of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The registry had lost the block. It continues above all numbers that it can have lost.
    Raised { tag: String },
    /// The segment does not exist, so this server must not continue to use its blocks. A different segment may have the
    /// same tag now.
    Void { tag: String, created_again: bool },
}

/// A connection for sending statements, and the time limit for each of them.
pub struct SegmentClient<'connection> {
    pub connection: &'connection Connection,
    pub patience: Duration,
    pub fleet: Uuid,
    pub format: IdFormat,
}

impl SegmentClient<'_> {
    /// Requests a nonce from the registry. The nonce is not generated locally, because a copy of this server's memory
    /// would generate the same one.
    pub fn nonce(&self) -> Result<Uuid, Trouble> {
        let parameters =
            [self.fleet(), Some(self.format.layout.to_string()), Some(self.format.epoch.unix_ms().to_string())];
        let row = self.row(HELLO, &parameters)?;
        let nonce = row.get("nonce").and_then(|nonce| u128::from_str_radix(&nonce.replace('-', ""), 16).ok());
        match (row.get("answer"), nonce) {
            (Some("hello"), Some(nonce)) => Ok(Uuid(nonce)),
            _ => Err(self.other(&row)),
        }
    }

    /// Requests a block of a tag.
    pub fn take(&self, tag: &str, nonce: Uuid, want: u64) -> Result<TakeAnswer, Trouble> {
        let want = want.min(i64::MAX as u64).to_string();
        let row = self.row(TAKE, &[self.fleet(), Some(tag.into()), text(nonce), Some(want)])?;
        let number = |column: &str| row.get(column)?.parse::<u64>().ok();
        let taken = || {
            let (count, first) =
                (number("count").filter(|count| (1..=flake::MAX_BLOCK).contains(count))?, number("first")?);
            let first = i64::try_from(first).ok().filter(|first| first.checked_add(count as i64).is_some())?;
            let (step, max_step) = (number("step")?, number("max_step")?);
            Some(Taken { generation: number("generation")?, first, count, step, max_step })
        };
        let until = row.get("until").and_then(|seconds| seconds.parse::<f64>().ok()).unwrap_or_default();
        let until = (until * 1e6) as i64;
        match (row.get("answer"), row.get("reason")) {
            (Some("taken"), None) => taken().map(TakeAnswer::Taken).ok_or_else(|| strange(&row)),
            (Some("refused"), Some("unknown tag")) => Ok(TakeAnswer::Refused(Reason::Unknown, until)),
            (Some("refused"), Some("wait")) => Ok(TakeAnswer::Refused(Reason::Wait, until)),
            (Some("refused"), Some("locked")) => Ok(TakeAnswer::Refused(Reason::Locked, until)),
            (Some("refused"), Some("exhausted")) => Ok(TakeAnswer::Refused(Reason::Exhausted, until)),
            _ => Err(self.other(&row)),
        }
    }

    /// Creates the tag of a series' period if it does not exist. If the registry does not create it, returns the
    /// reason.
    pub fn begin(&self, tag: &str, period: &PeriodTag) -> Result<Option<Reason>, Trouble> {
        // A period begins at a full second.
        let begins = period.begins.div_euclid(1_000_000);
        let (step, max_step) = period.lengths;
        let numbers = [begins.to_string(), period.start.to_string(), step.to_string(), max_step.to_string()];
        let [begins, start, step, max_step] = numbers.map(Some);
        let row = self.row(BEGIN, &[self.fleet(), Some(tag.into()), begins, start, step, max_step])?;
        match (row.get("answer"), row.get("reason")) {
            (Some("created" | "current"), None) => Ok(None),
            (Some("refused"), Some("not begun")) => Ok(Some(Reason::NotBegun)),
            (Some("refused"), Some("unknown tag")) => Ok(Some(Reason::Unknown)),
            _ => Err(self.other(&row)),
        }
    }

    /// Gives numbers of a block back to the registry. Returns false if the registry does not accept them.
    pub fn give_back(&self, tag: &str, rest: &Rest) -> Result<bool, Trouble> {
        let number = |number: i64| Some(number.to_string());
        let (generation, nonce) = (number(rest.generation as i64), text(rest.nonce));
        let parameters = [self.fleet(), Some(tag.into()), generation, nonce, number(rest.first), number(rest.last)];
        self.row(GIVE_BACK, &parameters).map(|row| row.get("answer") == Some("given back"))
    }

    /// Reports the tags whose blocks this server holds. For each tag, the report contains its generation and the last
    /// number of the highest block.
    pub fn report(&self, held: &[(String, u64, i64)]) -> Result<Vec<Said>, Trouble> {
        let array = |items: Vec<String>| Some(format!("{{{}}}", items.join(",")));
        let tags = array(held.iter().map(|(tag, _, _)| quoted(tag)).collect());
        let generations = array(held.iter().map(|(_, generation, _)| generation.to_string()).collect());
        let lasts = array(held.iter().map(|(_, _, last)| last.to_string()).collect());
        let row = self.row(REPORT, &[self.fleet(), tags, generations, lasts])?;
        let Some(answers) = row.get("answers") else { return Ok(Vec::new()) };
        let answers: Vec<[Value; 3]> = serde_json::from_str(answers).map_err(|_| strange(&row))?;
        let said = answers.iter().filter_map(|[answer, reason, tag]| {
            let tag = tag.as_str().unwrap_or_default().to_owned();
            match (answer.as_str(), reason.as_str()) {
                (Some("raised"), _) => Some(Said::Raised { tag }),
                (Some("refused"), Some(reason @ ("unknown tag" | "generation"))) => {
                    Some(Said::Void { tag, created_again: reason == "generation" })
                }
                _ => None,
            }
        });
        Ok(said.collect())
    }

    /// Returns false if the registry has no such tag. The call does not lock or write anything in the registry.
    pub fn exists(&self, tag: &str) -> Result<bool, Trouble> {
        // No tag has this generation. Any other answer, such as a refusal for a different fleet, would also be returned
        // by take().
        let said = self.report(&[(tag.to_owned(), 0, 0)])?;
        Ok(!said.iter().any(|said| matches!(said, Said::Void { created_again: false, .. })))
    }

    fn fleet(&self) -> Option<String> {
        text(self.fleet)
    }

    fn row(&self, sql: &CStr, parameters: &[Option<String>]) -> Result<ResultRow, Trouble> {
        self.connection.row(sql, parameters, self.patience).map_err(Trouble::NoAnswer)
    }

    /// Returns the trouble for an answer that any call can receive.
    fn other(&self, row: &ResultRow) -> Trouble {
        match (row.get("answer"), row.get("reason")) {
            (Some("refused"), Some("foreign fleet")) => Trouble::Refused {
                refusal: RegistryRefusal::ForeignFleet,
                facts: Box::<RefusalFacts>::default(),
                format: self.format,
            },
            _ => strange(row),
        }
    }
}

fn text(Uuid(uuid): Uuid) -> Option<String> {
    Some(format!("{uuid:032x}"))
}

/// Formats a text as an element of an SQL array.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn strange(row: &ResultRow) -> Trouble {
    let text = |column| row.get(column).map_or("null".into(), |text| text.chars().take(100).collect::<String>());
    Trouble::Strange { answer: format!("{}, {}", text("answer"), text("reason")) }
}
