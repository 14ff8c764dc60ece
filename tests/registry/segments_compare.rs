//! The registry's functions for segments make the same decisions as [`flake::fleet::Tags`], on which the exploration is based.
//!
//! Random requests, also old ones, are sent to both, while the clock is stepped and the registry loses what it has stored. After each
//! request, the answers and the stored records must be the same.

use std::collections::BTreeMap;

use cluster::{Answer as _, Chance, Client, Cluster, assert_caught, ensure, rounds};
use flake::fleet::{
    BLOCKS_IN_WINDOW, Begun, FAR, MARGIN, NoBlock, Skip, TagBlock, TagRecord, Tags, Top, UNKNOWN_STEPS, Uuid,
};

use crate::blocks::{Taker, last};
use crate::calls::{BEGIN, LAYOUT, micros, spoil, stop_clock_at, uuid};

const TAGS: [&str; 3] = ["orders", "päckchen", "series invoices 2026-03"];
/// Where the tags begin.
const STARTS: [&[i64]; 3] = [&[0, 1], &[1, i64::MAX - 700], &[1]];
/// The tag that servers create, and when its period begins, in seconds after the clock does.
const PERIOD: usize = 2;
const BEGINS: [i64; 4] = [-3_600, 600, 1_200, 5_000];
const SAVED: [&str; 4] = ["fleet", "node", "segment", "skip"];
/// Each of these answers comes in every run. Otherwise, nothing would be shown about some of the rules.
const KINDS: &str = "Ok OkTagBlock ErrUnknownTag ErrWait ErrExhausted ErrGeneration ErrNotTop Current Raised UnknownTag Generation \
    Ahead Created";

/// What the model knows about the fleet.
#[derive(Clone)]
struct Reference {
    tags: Tags,
    /// Times in microseconds since the Unix epoch.
    seen: i64,
    life_since: i64,
    quarantine_until: i64,
    quarantine_before: i64,
}

struct SegmentsPair {
    server: Cluster,
    taker: Taker,
    reference: Reference,
    saved: Option<Reference>,
    clock: i64,
    begin: i64,
    timeline: i64,
    /// How many timelines the recorded one is below the server's.
    behind: i64,
}

impl SegmentsPair {
    fn new(name: &str) -> SegmentsPair {
        let server = Cluster::builder(name).clock(BEGIN).start_registry(LAYOUT);
        let mut taker = Taker::of(&server);
        let begin = taker.client.one(&format!("SELECT {}", micros("clock_timestamp()")));
        let timeline = taker.client.one("SELECT timeline FROM snowflake_registry.fleet");
        let sql = "INSERT INTO snowflake_registry.node
                 VALUES (0, 0, gen_random_uuid(), gen_random_uuid(), 1, 1, 0, 0, now(), clock_timestamp(), '12 h', '{}')";
        taker.client.batch_execute(sql).expect("a superuser may");
        for table in SAVED {
            let save = format!("CREATE TABLE saved_{table} AS TABLE snowflake_registry.{table}");
            taker.client.batch_execute(&save).expect("a superuser may");
        }
        let tags = Tags { life: 1, ..Tags::default() };
        let reference = Reference { tags, seen: begin, life_since: begin, quarantine_until: 0, quarantine_before: 0 };
        SegmentsPair { server, taker, reference, saved: None, clock: 0, begin, timeline, behind: 0 }
    }

    fn client(&mut self) -> &mut Client {
        &mut self.taker.client
    }

    fn now(&self) -> i64 {
        self.begin + self.clock * 1_000_000
    }

    fn step(&mut self, seconds: i64) {
        self.clock += seconds;
        stop_clock_at(&self.server, &mut self.taker.client, self.clock);
    }

    fn beat(&mut self) {
        self.client().batch_execute("UPDATE snowflake_registry.node SET seen = clock_timestamp()").expect("may");
        self.reference.seen = self.now();
    }

    /// Begins a new life of the model if the registry is on another timeline than before.
    fn notice(&mut self) {
        if self.behind == 0 {
            return;
        }
        let now = self.now();
        let (far, margin) = (FAR.as_micros() as i64, MARGIN.as_micros() as i64);
        let steps = u32::try_from(self.behind).unwrap_or(UNKNOWN_STEPS);
        let r = &mut self.reference;
        let within = r.quarantine_until > 0 && now <= r.quarantine_until + margin;
        let lives = u64::try_from(self.behind).unwrap_or(1);
        // A time in the future can be a day old.
        let latest = |time| if time > now + margin { now - far } else { time };
        r.tags.begin_life(now, latest(r.seen).max(latest(r.life_since)), lives, steps, within);
        if !within {
            r.quarantine_before = r.quarantine_until;
        }
        r.quarantine_until = r.quarantine_until.max(now + far);
        r.life_since = now;
        self.behind = 0;
    }

    fn save(&mut self) {
        // A life that is not noticed yet would be noticed in the copy.
        if self.behind != 0 {
            return;
        }
        self.saved = Some(self.reference.clone());
        for table in SAVED {
            let save = format!("TRUNCATE saved_{table}; INSERT INTO saved_{table} TABLE snowflake_registry.{table}");
            self.client().batch_execute(&save).expect("a superuser may");
        }
    }

    /// Puts the registry back to the stored copy, whose timeline is `behind` below the server's.
    fn lose(&mut self, behind: i64) {
        let Some(saved) = self.saved.clone() else { return };
        self.reference = saved;
        self.behind = behind;
        for table in SAVED {
            let put = format!(
                "TRUNCATE snowflake_registry.{table}; INSERT INTO snowflake_registry.{table} TABLE saved_{table}"
            );
            self.client().batch_execute(&put).expect("a superuser may");
        }
        let timeline = self.timeline - behind;
        let put = format!(
            "UPDATE snowflake_registry.fleet SET timeline = {timeline}; SELECT snowflake_registry.mark_fleet()"
        );
        self.client().batch_execute(&put).expect("a superuser may");
    }

    fn open(&mut self) -> Result<(), String> {
        self.notice();
        let opened: bool = self.client().one("SELECT snowflake_registry.open()");
        let (now, margin) = (self.now(), MARGIN.as_micros() as i64);
        let r = &mut self.reference;
        let within = |until: i64| until > 0 && now <= until + margin;
        let expected = within(r.quarantine_until) && !within(r.quarantine_before);
        if within(r.quarantine_until) {
            r.quarantine_until = r.quarantine_before;
            r.tags.open();
        }
        ensure!(opened == expected, "open returns {opened}");
        self.compare()
    }

    fn compare(&mut self) -> Result<(), String> {
        let stored = self.stored();
        let expected = &self.reference.tags;
        ensure!(stored == *expected, "differs: stored is {stored:#?},\nnot {expected:#?}");
        Ok(())
    }

    fn stored(&mut self) -> Tags {
        let sql = format!(
            "SELECT tag, generation, next_value, step, max_step, replace(top_nonce::text, '-', ''), top_first,
                replace(below_nonce::text, '-', ''), below_first, life, {}, window_used FROM snowflake_registry.segment",
            micros("window_start")
        );
        let rows = self.client().query(&sql, &[]).expect("the table exists");
        let segments = rows.iter().map(|row| {
            let below: Option<String> = row.get(7);
            let segment = TagRecord {
                generation: row.get::<_, i64>(1) as u64,
                next: row.get(2),
                step: row.get(3),
                max_step: row.get(4),
                top: Top { nonce: uuid(row.get(5)), first: row.get(6) },
                below: below.map(|nonce| Top { nonce: uuid(&nonce), first: row.get(8) }),
                life: row.get::<_, i64>(9) as u64,
                window: row.get(10),
                used: row.get(11),
            };
            (row.get(0), segment)
        });
        let segments = segments.collect();
        let rows = self.client().query(
            &format!("SELECT life, quarantine, {}, lost, windows FROM snowflake_registry.skip", micros("since")),
            &[],
        );
        let skips: BTreeMap<u64, Skip> = rows
            .expect("the table exists")
            .iter()
            .map(|row| {
                let quarantine = row.get::<_, i64>(1) as u64;
                (
                    row.get::<_, i64>(0) as u64,
                    Skip { quarantine, since: row.get(2), lost: row.get(3), windows: row.get(4) },
                )
            })
            .collect();
        let row = self.client().query_one("SELECT life, generation FROM snowflake_registry.fleet", &[]);
        let row = row.expect("the fleet exists");
        Tags { life: row.get::<_, i64>(0) as u64, generation: row.get::<_, i64>(1) as u64, floor: 0, segments, skips }
    }

    fn take(&mut self, tag: &str, nonce: Uuid, want: i64) -> Result<Result<TagBlock, NoBlock>, String> {
        let answer = self.taker.try_take(nonce, want).map_err(|error| format!("{error:?}"))?;
        self.notice();
        let now = self.now();
        let expected = self.reference.tags.take(now, tag, nonce, want);
        ensure!(answer == expected, "differs: taking {want} of {tag} gives {answer:?}, not {expected:?}");
        self.compare()?;
        Ok(answer)
    }

    /// A server asks for the tag of a period. Returns the answer.
    fn begin(&mut self, tag: &str, begins: i64) -> Result<Begun, String> {
        let fleet = &self.taker.fleet;
        // A request that is too early does not notice that the registry is in another place.
        let early = self.now() + MARGIN.as_micros() as i64 <= begins;
        let ask = format!(
            "SELECT coalesce(reason, answer), generation FROM snowflake_registry.begin_segment('{fleet}', '{tag}',
                 timestamptz 'epoch' + {begins} * interval '1 us', 1, 10, 30)"
        );
        let row = self.client().query_one(&ask, &[]).map_err(|error| format!("{error:?}"))?;
        let answer = match row.get(0) {
            "created" => Begun::Created(row.get::<_, i64>(1) as u64),
            "current" => Begun::Current,
            "not begun" => Begun::Early,
            other => panic!("unknown answer {other:?}"),
        };
        if !early {
            self.notice();
        }
        let (now, fresh) = (self.now(), self.fresh(tag));
        let expected = self.reference.tags.begin(now, tag, begins, 1, (10, 30), fresh);
        ensure!(answer == expected, "differs: the period at {begins} gives {answer:?}, not {expected:?}");
        if self.behind == 0 {
            self.compare()?;
        }
        Ok(answer)
    }

    /// The nonce that the registry has made, if it has made one.
    fn fresh(&mut self, tag: &str) -> Uuid {
        self.stored().segments.get(tag).map_or(Uuid(0), |segment| segment.top.nonce)
    }
}

/// Returns the lowest number that the registry cannot have lost, which is the lowest that a report cannot raise a tag to.
fn unlost(tags: &Tags, tag: &str) -> i64 {
    let Some(segment) = tags.segments.get(tag) else { return i64::MAX };
    let lost: i128 = tags.skips.values().map(|skip| i128::from(skip.lost)).sum();
    let lost = lost * i128::from(segment.max_step * BLOCKS_IN_WINDOW);
    (i128::from(segment.next) + tags.pending(segment) + lost).try_into().unwrap_or(i64::MAX)
}

/// Sends random requests to both, at least this many, and goes on until each kind of answer has come. Returns how many answers of
/// each kind there were.
fn check(name: &str, steps: usize, spoil: impl Fn(&mut Client)) -> Result<BTreeMap<String, usize>, String> {
    let mut chance = Chance::of(name);
    let mut both = SegmentsPair::new(name);
    spoil(both.client());
    let begins = both.begin + *chance.pick(&BEGINS) * 1_000_000;
    let mut old: Vec<(TagBlock, usize)> = Vec::new();
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for step in 0..10 * steps {
        if step >= steps && KINDS.split(' ').all(|kind| answers.contains_key(kind)) {
            break;
        }
        let mut count = |kind: String| *answers.entry(kind.split([' ', '(', ')']).take(2).collect()).or_default() += 1;
        let which = chance.between(0, 2) as usize;
        let tag = TAGS[which];
        both.taker.tag = tag.into();
        match chance.between(0, 99) {
            0..=7 => both.step(*chance.pick(&[1, 60, 300, 599, 600, 601, 1_300, 21_600, 90_000])),
            8 => both.step(-*chance.pick(&[1, 300, 600, 601, 5_000])),
            9..=14 => both.beat(),
            15..=17 => both.save(),
            18..=20 => both.lose(*chance.pick(&[0, 1, 1, 1, 2, -1])),
            21..=22 => both.open()?,
            23..=28 => {
                let (exists, now) = (both.reference.tags.segments.contains_key(tag), both.now());
                if exists && which != PERIOD && chance.one_in(3) {
                    let drop = format!("SELECT snowflake_registry.drop_segment('{tag}')");
                    both.client().batch_execute(&drop).map_err(|error| format!("{error:?}"))?;
                    both.notice();
                    both.reference.tags.drop(tag);
                } else if which == PERIOD {
                    let begun = both.begin(tag, begins)?;
                    count(format!("{begun:?}").trim_end_matches(|c: char| !c.is_alphabetic()).into());
                } else if !exists {
                    let step = *chance.pick(&[1, 10, 1_000]);
                    let (start, max_step) = (*chance.pick(STARTS[which]), step * *chance.pick(&[1, 3]));
                    let create =
                        format!("SELECT snowflake_registry.create_segment('{tag}', {start}, {step}, {max_step})");
                    both.client().batch_execute(&create).map_err(|error| format!("{error:?}"))?;
                    both.notice();
                    let fresh = both.fresh(tag);
                    both.reference.tags.create(now, tag, start, (step, max_step), fresh);
                }
                if both.behind == 0 {
                    both.compare()?;
                }
            }
            29..=45 if !old.is_empty() => {
                let (block, which) = *chance.pick(&old);
                let first = chance.between(block.first - 2, last(&block)).max(0);
                let end = if chance.one_in(5) { last(&block) - 1 } else { last(&block) };
                let tag = TAGS[which];
                both.taker.tag = tag.into();
                if end < first || last(&block) < 0 {
                    continue;
                }
                let answer = both.taker.give_back(&block, first, end);
                both.notice();
                let fresh = both.fresh(tag);
                let expected = both.reference.tags.give_back(tag, block.generation, block.nonce, (first, end), fresh);
                ensure!(answer == expected, "differs: {block:?} back from {first} gives {answer:?}, not {expected:?}");
                both.compare()?;
                count(format!("{answer:?}"));
            }
            46..=55 if !old.is_empty() => {
                let (block, which) = *chance.pick(&old);
                let tag = TAGS[which];
                let end = match chance.between(0, 9) {
                    0..=1 => unlost(&both.reference.tags, tag).saturating_sub(chance.between(0, 1)),
                    _ => last(&block).saturating_add(chance.between(0, 3)),
                };
                both.taker.tag = tag.into();
                let answer = both.taker.report(block.generation, end);
                both.notice();
                let fresh = both.fresh(tag);
                let expected = both.reference.tags.report(tag, block.generation, end, fresh);
                ensure!(answer == expected, "differs: the report of {end} gives {answer:?}, not {expected:?}");
                both.compare()?;
                count(format!("{answer:?}"));
            }
            // More than a window has.
            56 => {
                for _ in 0..65 {
                    let nonce = both.taker.nonce();
                    let answer = both.take(tag, nonce, i64::MAX)?;
                    count(format!("{answer:?}"));
                    if answer.is_err() {
                        break;
                    }
                }
            }
            _ => {
                let nonce = both.taker.nonce();
                let nonce = if chance.one_in(10) { old.last().map_or(nonce, |(block, _)| block.nonce) } else { nonce };
                let answer = both.take(tag, nonce, *chance.pick(&[1, 5, 70, i64::MAX]))?;
                count(format!("{answer:?}"));
                if let Ok(block) = answer {
                    old.push((block, which));
                    if old.len() > 12 {
                        old.remove(0);
                    }
                }
            }
        }
    }
    println!("{name}: life {}, {answers:#?}", both.reference.tags.life);
    Ok(answers)
}

#[test]
fn the_functions_for_segments_answer_and_store_what_the_model_does() {
    let answers = check("registry_segments_compare", rounds(4_000, 1_500) as usize, |_| {}).unwrap();
    for kind in KINDS.split(' ') {
        assert!(answers.contains_key(kind), "no answer was {kind}: {answers:?}");
    }
}

#[test]
fn a_function_for_segments_with_another_rule_is_caught() {
    let spoil = |client: &mut Client| spoil(client, "lost_windows", "+ 3 +", "+ 2 +");
    assert_caught(check("registry_segments_spoiled", 3_000, spoil).map(drop), "differs: ");
}
