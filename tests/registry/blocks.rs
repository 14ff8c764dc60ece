//! Requests for blocks of the numbers of a tag.

use cluster::{Answer as _, Client, Cluster};
use flake::fleet::{Kept, NoBlock, ReportAnswer, TagBlock, Uuid};

use crate::calls::{LAYOUT, micros, registry, uuid};

/// A session that takes blocks of one tag.
pub struct Taker {
    pub client: Client,
    pub fleet: String,
    pub tag: String,
}

/// Starts a registry with one tag that begins at 1.
pub fn with_tag(name: &str, step: i64, max_step: i64) -> (Cluster, Taker) {
    let server = registry(name, LAYOUT);
    let sql = format!("SELECT snowflake_registry.create_segment('orders', 1, {step}, {max_step})");
    server.connect().batch_execute(&sql).expect("the tag is new");
    let taker = Taker::of(&server);
    (server, taker)
}

/// Returns a UUID as SQL.
pub fn sql(Uuid(uuid): Uuid) -> String {
    format!("'{uuid:032x}'")
}

impl Taker {
    pub fn of(server: &Cluster) -> Taker {
        Taker::on(server.connect(), "orders")
    }

    pub fn on(mut client: Client, tag: &str) -> Taker {
        let fleet = client.one("SELECT fleet_id::text FROM snowflake_registry.fleet");
        Taker { client, fleet, tag: tag.into() }
    }

    pub fn nonce(&mut self) -> Uuid {
        uuid(&self.client.one::<String>("SELECT replace(gen_random_uuid()::text, '-', '')"))
    }

    /// Takes a block, and returns the answer.
    pub fn try_take(&mut self, nonce: Uuid, want: i64) -> Result<Result<TagBlock, NoBlock>, postgres::Error> {
        let (fleet, tag, nonce, until) = (&self.fleet, &self.tag, sql(nonce), micros("until"));
        let row = self.client.query_one(
            &format!(
                "SELECT answer, reason, generation, replace(nonce::text, '-', ''), first, count, {until}
                 FROM snowflake_registry.take('{fleet}', '{tag}', {nonce}, {want})"
            ),
            &[],
        )?;
        let (answer, reason): (String, Option<String>) = (row.get(0), row.get(1));
        Ok(match (answer.as_str(), reason.as_deref()) {
            ("taken", None) => Ok(TagBlock {
                generation: row.get::<_, i64>(2) as u64,
                nonce: uuid(row.get(3)),
                first: row.get(4),
                count: row.get(5),
            }),
            ("refused", Some("unknown tag")) => Err(NoBlock::UnknownTag),
            ("refused", Some("wait")) => Err(NoBlock::Wait { until: row.get(6) }),
            ("refused", Some("exhausted")) => Err(NoBlock::Exhausted),
            other => panic!("unknown answer {other:?}"),
        })
    }

    /// Takes a block, and returns the answer, or the reason of a refusal.
    pub fn answer(&mut self, nonce: Uuid, want: i64) -> String {
        let (fleet, tag, nonce) = (&self.fleet, &self.tag, sql(nonce));
        self.client.one(&format!(
            "SELECT coalesce(reason, answer) FROM snowflake_registry.take('{fleet}', '{tag}', {nonce}, {want})"
        ))
    }

    /// Takes a block with a new nonce.
    pub fn take(&mut self, want: i64) -> TagBlock {
        let nonce = self.nonce();
        self.try_take(nonce, want).expect("the registry answers").expect("a block")
    }

    /// Gives the numbers from `first` to `last` of a block back.
    pub fn give_back(&mut self, block: &TagBlock, first: i64, last: i64) -> Result<(), Kept> {
        let (fleet, tag, nonce, generation) = (&self.fleet, &self.tag, sql(block.nonce), block.generation);
        let answer = format!(
            "SELECT coalesce(reason, answer) FROM snowflake_registry.give_back('{fleet}', '{tag}', {generation}, {nonce}, {first}, {last})"
        );
        match self.client.one::<String>(&answer).as_str() {
            "given back" => Ok(()),
            "unknown tag" => Err(Kept::UnknownTag),
            "generation" => Err(Kept::Generation),
            "not the top" => Err(Kept::NotTop),
            other => panic!("unknown answer {other:?}"),
        }
    }

    pub fn report(&mut self, generation: u64, last: i64) -> ReportAnswer {
        let (fleet, tag) = (&self.fleet, &self.tag);
        let answer = format!(
            "SELECT coalesce(reason, answer) FROM snowflake_registry.report('{fleet}', '{{{tag}}}', '{{{generation}}}', '{{{last}}}')"
        );
        match self.client.one::<String>(&answer).as_str() {
            "current" => ReportAnswer::Current,
            "raised" => ReportAnswer::Raised,
            "unknown tag" => ReportAnswer::UnknownTag,
            "generation" => ReportAnswer::Generation,
            "ahead" => ReportAnswer::Ahead,
            other => panic!("unknown answer {other:?}"),
        }
    }

    /// Returns the tag's next number and how many numbers it skips before.
    pub fn next(&mut self) -> (i64, i64) {
        let sql = format!("SELECT next_value, skip FROM snowflake_registry.segments WHERE tag = '{}'", self.tag);
        let row = self.client.query_one(&sql, &[]).expect("the tag exists");
        (row.get(0), row.get(1))
    }
}

/// The last number of a block.
pub fn last(block: &TagBlock) -> i64 {
    block.first + block.count - 1
}

/// Checks that ranges of numbers do not overlap. Returns how many numbers they have.
pub fn check_ledger(mut ranges: Vec<(i64, i64)>) -> Result<i64, String> {
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        if pair[1].0 <= pair[0].1 {
            return Err(format!("number {} was used twice", pair[1].0));
        }
    }
    Ok(ranges.iter().map(|(first, last)| last - first + 1).sum())
}
