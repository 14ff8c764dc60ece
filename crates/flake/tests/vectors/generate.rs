//! The text of the file: one object a line, in an order that only a change of this code changes.

use std::collections::BTreeSet;
use std::fmt::Write;

use flake::{Epoch, IdFormat, Layout, Node, Part, Preset, from_text, to_text};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::random::Random;

/// Layouts without a name, each with the Unix milliseconds of its epoch: other orders, widths, ticks and epochs.
const UNNAMED: [(&str, i64); 17] = [
    ("41:10:12", TWITTER),
    ("41:10:12", 1_704_067_200_000),
    ("41:10:12", 7_258_118_399_999),
    ("41:5:5:12", TWITTER),
    ("41:4:8", TWITTER),
    ("41:0:10:12", 0),
    ("41:10:0:12", 951_782_400_000),
    ("41:12s:10", 1_672_531_200_000),
    ("41:12s:5:5", 1_577_836_800_001),
    ("39:8s:16@10ms", 1_735_689_600_000),
    ("38:3:6:16@10ms", 1_583_020_799_999),
    ("29:21:13@1s", 1_474_300_800_000),
    ("31:16s:8:8@1s", 1_706_702_400_500),
    ("1:31:31", 1_609_459_200_000),
    ("10:2:3:4", 1_609_459_200_000),
    ("62:0:1", 0),
    ("62:0:1@1s", TWITTER),
];

const TWITTER: i64 = Epoch::TWITTER.unix_ms();

/// Published IDs, which other pages and tests have as well. Each is read in the named layout.
const PUBLISHED: [(&str, i64); 7] = [
    ("twitter", 1_541_815_603_606_036_480),
    ("discord", 175_928_847_299_117_063),
    ("instagram", 733_194_846_952_938_437),
    ("mastodon", 103_270_115_826_048_975),
    ("sonyflake", 0x045e_ec4a_4600_041b),
    ("uid-generator", 180_363_646_902_239_241),
    ("pgedge", 136_169_504_773_242_881),
];

/// IDs of a layout that are drawn at random.
const RANDOM: usize = 9;

const NOT_LAYOUTS: [&str; 26] = [
    "",
    " ",
    ":",
    "unknown",
    "twitter2",
    "twitter@1ms",
    // With the sign for Kelvin, whose lower case is the letter k.
    "sonyfla\u{212a}e",
    "41:10",
    "41:10:",
    "41:10:12:",
    "41:1:2:3:4",
    "41:10:-12",
    "41:+10:12",
    "41: 10:12",
    "41:10.5:12",
    "0x29:10:12",
    "41s:10:12",
    "41:10:12s",
    "41:12ss:10",
    "0:10:12",
    "41:10:0",
    "41:32:1",
    "41:11:12",
    "99999999999999999999:10:12",
    "41:10:12@",
    "41:10:12@2ms",
];

const NOT_TEXTS: [&str; 11] = [
    "",
    "1",
    "1ASD13XH1F80",
    "1ASD13XH1F8000",
    "1ASD13XH1F80U",
    "1ASD13XH1F80-",
    " 1ASD13XH1F80",
    "1ASD13XH1F80 ",
    "8000000000000",
    "ZZZZZZZZZZZZZ",
    "1ASD13XH1F80\u{e9}",
];

/// The whole file.
pub fn file() -> String {
    let mut out = String::from("{\n");
    section(&mut out, "layouts", Preset::ALL.iter().map(layout).collect(), ",");
    section(&mut out, "ids", ids(), ",");
    section(&mut out, "spellings", spellings(), ",");
    section(&mut out, "errors", errors(), "");
    out + "}\n"
}

fn section(out: &mut String, name: &str, lines: Vec<String>, end: &str) {
    writeln!(out, "\"{name}\": [\n{}\n]{end}", lines.join(",\n")).expect("a text grows");
}

/// The definition of a named layout.
fn layout(preset: &Preset) -> String {
    let meaning = |text: Option<&str>| text.map_or("null".into(), string);
    let layout = preset.format.layout;
    let bits = |part| layout.max(part).count_ones();
    format!(
        "{{\"name\":{},\"bits\":{},\"epoch\":{},\"tick_ms\":{},\"timestamp_bits\":{},\"datacenter_bits\":{},\
         \"worker_bits\":{},\"sequence_bits\":{},\"sequence_lowest\":{},\"datacenter_id\":{},\"worker_id\":{},\
         \"sequence\":{},\"last_id\":\"{}\"}}",
        string(preset.name),
        string(&layout.to_string()),
        string(&iso(preset.format.epoch.unix_ms().into())),
        layout.tick().micros() / 1_000,
        bits(Part::Timestamp),
        bits(Part::Datacenter),
        bits(Part::Worker),
        bits(Part::Sequence),
        layout.sequence_lowest(),
        meaning(preset.datacenter),
        meaning(preset.worker),
        string(preset.sequence),
        layout.last_id()
    )
}

/// The layouts to try, each with its text.
fn formats() -> Vec<(&'static str, IdFormat)> {
    let named = Preset::ALL.iter().map(|preset| (preset.name, preset.format));
    let unnamed = UNNAMED.into_iter().map(|(text, ms)| {
        let epoch = Epoch::from_unix_ms(ms).expect("an epoch in range");
        (text, IdFormat { layout: Layout::parse(text).expect("a layout"), epoch })
    });
    named.chain(unnamed).collect()
}

fn ids() -> Vec<String> {
    let mut random = Random(0x5eed);
    let vectors = formats().into_iter().flat_map(|(text, format)| {
        let ids = interesting(text, &format, &mut random);
        ids.into_iter().map(move |id| vector(text, &format, id)).collect::<Vec<_>>()
    });
    vectors.collect()
}

/// IDs at the edges of a layout and of its fields, then random ones; each once.
fn interesting(text: &str, format: &IdFormat, random: &mut Random) -> Vec<i64> {
    let layout = &format.layout;
    let max = |part| layout.max(part);
    let id = |tick: u64, datacenter: u64, worker: u64, sequence: u64| {
        let node = Node { datacenter: datacenter as u32, worker: worker as u32 };
        let word = tick << layout.sequence_bits() | sequence;
        layout.stamp(node).expect("a node that fits").id(word)
    };
    let (last_tick, datacenter, worker, sequence) =
        (max(Part::Timestamp), max(Part::Datacenter), max(Part::Worker), max(Part::Sequence));
    let mut ids = vec![
        0,
        1,
        id(0, datacenter, worker, sequence),
        id(1, 0, 0, 0),
        id(last_tick / 2, 0, worker, 0),
        id(last_tick / 2, datacenter, 0, 0),
        id(last_tick / 2, 0, 0, sequence),
        id(last_tick, 0, 0, 0),
        id(last_tick, datacenter, worker, sequence) - 1,
        layout.last_id(),
        // Around the last number that JavaScript represents exactly.
        (1 << 53) - 1,
        1 << 53,
        (1 << 53) + 1,
    ];
    ids.extend(PUBLISHED.iter().filter(|(name, _)| *name == text).map(|(_, id)| id));
    // 2024-02-29 12:34:56.789 UTC.
    let leap_day = 1_709_210_096_789_000;
    let node = Node { datacenter: datacenter.min(3) as u32, worker: worker.min(5) as u32 };
    ids.extend(format.join(leap_day, node, sequence.min(42) as u32));
    ids.extend((0..RANDOM).map(|n| {
        let id = random.next() as i64 & layout.last_id();
        // Also short ones.
        if n % 3 == 2 { id >> (random.next() % 40) } else { id }
    }));
    let mut seen = BTreeSet::new();
    ids.retain(|id| *id <= layout.last_id() && seen.insert(*id));
    ids
}

/// An ID with its parts, and the first and the last ID of its tick.
fn vector(text: &str, format: &IdFormat, id: i64) -> String {
    let parts = format.split(id).expect("an ID of this layout");
    let instant = format.instant(parts.tick);
    assert_eq!(format.join(instant, parts.node, parts.sequence), Ok(id));
    assert_eq!(from_text(&to_text(id).expect("an ID")), Ok(id));
    let number = |there: bool, number: u32| if there { number.to_string() } else { "null".into() };
    format!(
        "{{\"layout\":{},\"epoch\":{},\"id\":\"{id}\",\"created_at\":{},\"datacenter_id\":{},\"worker_id\":{},\
         \"sequence\":{},\"text\":{},\"min_id\":\"{}\",\"max_id\":\"{}\"}}",
        string(text),
        string(&epoch(format)),
        string(&iso(instant / 1_000)),
        number(format.layout.has_datacenter(), parts.node.datacenter),
        number(format.layout.has_worker(), parts.node.worker),
        parts.sequence,
        string(&to_text(id).expect("an ID").map(char::from).iter().collect::<String>()),
        format.min_id(instant).expect("an instant of this layout"),
        format.max_id(instant).expect("an instant of this layout"),
    )
}

fn epoch(format: &IdFormat) -> String {
    iso(format.epoch.unix_ms().into())
}

/// Texts of an ID in other spellings than its own.
fn spellings() -> Vec<String> {
    let texts = ["1asd13xh1f800", "1ASD13XHIF8OO", "1asd13xhLf8oO", "oooooooooooIl", "7zzzzzzzzzzzz"];
    let line = |text: &&str| {
        let id = from_text(text.as_bytes()).expect("a text of an ID");
        format!("{{\"text\":{},\"id\":\"{id}\"}}", string(text))
    };
    texts.iter().map(line).collect()
}

/// Input that every implementation refuses.
fn errors() -> Vec<String> {
    let mut lines = Vec::new();
    let mut error = |call: &str, fields: &[(&str, String)]| {
        let fields: String = fields.iter().map(|(name, value)| format!("\"{name}\":{value},")).collect();
        lines.push(format!("{{\"call\":\"{call}\",{fields}\"expected\":\"error\"}}"));
    };
    for (text, format) in formats() {
        let context =
            |name, value: &str| [("layout", string(text)), ("epoch", string(&epoch(&format))), (name, string(value))];
        let beyond = i128::from(format.layout.last_id()) + 1;
        for id in ["-9223372036854775808", "-1", &beyond.to_string()] {
            assert!(id.parse().map_or(true, |id| format.split(id).is_err()));
            error("decode", &context("id", id));
        }
        for at in [format.instant(0) - 1_000, format.end()] {
            // Years that PostgreSQL does not have are left out.
            if at < 9_000_000_000_000_000_000 {
                assert!(format.min_id(at).is_err() && format.max_id(at).is_err());
                error("range", &context("created_at", &iso(at / 1_000)));
            }
        }
        for part in [Part::Datacenter, Part::Worker, Part::Sequence] {
            for value in [-1, format.layout.max(part) as i64 + 1] {
                let of = |this| if this == part { value.to_string() } else { "0".into() };
                let parts = [
                    ("datacenter_id", of(Part::Datacenter)),
                    ("worker_id", of(Part::Worker)),
                    ("sequence", of(Part::Sequence)),
                ];
                error("encode", &[&context("created_at", &epoch(&format))[..], &parts].concat());
            }
        }
    }
    for text in NOT_LAYOUTS {
        assert!(IdFormat::parse(text).is_err(), "{text}");
        error("layout", &[("layout", string(text))]);
    }
    for text in NOT_TEXTS {
        assert!(from_text(text.as_bytes()).is_err(), "{text}");
        error("from_text", &[("text", string(text))]);
    }
    error("to_text", &[("id", string("-1"))]);
    lines
}

/// A number of milliseconds since 1970 in ISO 8601, in UTC. A year of more than four digits has a sign and at least six digits,
/// as in JavaScript. The calendar repeats after 400 years.
fn iso(unix_ms: i128) -> String {
    const ERA_MS: i128 = 146_097 * 86_400_000;
    let within =
        Timestamp::from_millisecond(unix_ms.rem_euclid(ERA_MS) as i64).expect("an instant of the next 400 years");
    let within = within.to_zoned_datetime(TimeZone::UTC);
    let year = i128::from(within.year()) + 400 * unix_ms.div_euclid(ERA_MS);
    let year = if year > 9_999 { format!("+{year:06}") } else { format!("{year:04}") };
    format!("{year}-{}Z", within.strftime("%m-%dT%H:%M:%S%.3f"))
}

/// A text as JSON.
fn string(text: &str) -> String {
    assert!(!text.contains(['"', '\\']) && !text.chars().any(char::is_control), "{text}");
    format!("\"{text}\"")
}
