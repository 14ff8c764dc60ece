//! Random values for every type of argument.

use cluster::Chance;

/// Characters of texts: digits and separators of layouts, digits of IDs, quotes, control characters, and other characters of one
/// to four bytes.
const CHARACTERS: [char; 44] = [
    '0', '1', '2', '4', '5', '6', '8', '9', ':', ':', ':', '@', 's', 'm', 'S', ' ', '-', '+', '.', 'Z', 'A', 'I', 'L',
    'O', 'U', 'o', 'z', '\'', '"', '\\', '$', '%', '{', ';', '\n', '\t', '\r', '\u{1}', '\u{7f}', 'é', '日',
    '\u{200b}', '٣', '🦀',
];

/// Layouts in use. Most of them cover the times of a century.
const KNOWN: &str =
    "twitter discord instagram mastodon sonyflake uid-generator pgedge leaf 41:10:12 41:5:5:12 40:8s:15@10ms 41:4:8";

const TICKS: [(&str, i64); 4] = [("", 1_000), ("@1ms", 1_000), ("@10ms", 10_000), ("@1s", 1_000_000)];

/// A valid layout, with its parts.
pub struct GeneratedLayout {
    pub text: String,
    /// Timestamp, datacenter, worker, sequence.
    pub bits: [u32; 4],
    sequence_second: bool,
    /// In microseconds.
    pub tick: i64,
}

impl GeneratedLayout {
    pub fn any(chance: &mut Chance) -> GeneratedLayout {
        loop {
            let mut width = |from, to| chance.between(from, to) as u32;
            let bits = [width(1, 62), width(0, 31), width(0, 31), width(1, 31)];
            let (datacenter, sequence_second) = (chance.one_in(2), chance.one_in(3));
            let bits = if datacenter { bits } else { [bits[0], 0, bits[2], bits[3]] };
            if bits.iter().sum::<u32>() > 63 {
                continue;
            }
            let (name, tick) = *chance.pick(&TICKS);
            let [timestamp, high, worker, sequence] = bits;
            let nodes = if datacenter { format!("{high}:{worker}") } else { worker.to_string() };
            let text = match sequence_second {
                true => format!("{timestamp}:{sequence}s:{nodes}{name}"),
                false => format!("{timestamp}:{nodes}:{sequence}{name}"),
            };
            return GeneratedLayout { text, bits, sequence_second, tick };
        }
    }

    pub fn max(&self, field: usize) -> i64 {
        (1 << self.bits[field]) - 1
    }

    pub fn shift(&self) -> u32 {
        self.bits[1] + self.bits[2] + self.bits[3]
    }

    /// The ID of a tick and parts, by multiplication.
    pub fn id(&self, tick: i64, datacenter: i64, worker: i64, sequence: i64) -> i64 {
        let node = datacenter * (1 << self.bits[2]) + worker;
        let below = match self.sequence_second {
            true => sequence * (1 << (self.bits[1] + self.bits[2])) + node,
            false => node * (1 << self.bits[3]) + sequence,
        };
        tick * (1 << self.shift()) + below
    }
}

/// An arbitrary text.
pub fn text(chance: &mut Chance) -> String {
    let characters =
        |chance: &mut Chance, count: i64| (0..count).map(|_| *chance.pick(&CHARACTERS)).collect::<String>();
    match chance.between(0, 10) {
        0 => characters(chance, 30),
        1 => characters(chance, 3),
        2 | 10 => chance.pick(&KNOWN.split(' ').collect::<Vec<_>>()).to_string(),
        // 13 characters, mostly a valid text of an ID.
        3 => (0..13)
            .map(|_| *chance.pick(b"0123456789abcdefghjklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTVWXYZ") as char)
            .collect(),
        4 => format!(
            "{}{}",
            chance.between(0, 7),
            (0..12).map(|_| *chance.pick(b"0189AKOLZz") as char).collect::<String>()
        ),
        5 if chance.one_in(20) => characters(chance, 2).repeat(chance.between(1, 300_000) as usize),
        // Numbers at the limits of their range.
        6 => {
            let limits =
                ["0", "1", "31", "32", "62", "63", "64", "041", "4294967296", "18446744073709551616", "-1", "+1", ""];
            let widths: Vec<&str> = (0..chance.between(2, 5)).map(|_| *chance.pick(&limits)).collect();
            widths.join(":")
        }
        kind => {
            let text = GeneratedLayout::any(chance).text;
            if kind == 7 { nearly(chance, &text) } else { text }
        }
    }
}

/// The text with one or two characters replaced, inserted or removed.
fn nearly(chance: &mut Chance, text: &str) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..chance.between(1, 2) {
        let at = chance.between(0, (text.len() as i64 - 1).max(0)) as usize;
        match chance.between(0, 2) {
            _ if text.is_empty() => text.push(*chance.pick(&CHARACTERS)),
            0 => text[at] = *chance.pick(&CHARACTERS),
            1 => text.insert(at, *chance.pick(&CHARACTERS)),
            _ => drop(text.remove(at)),
        }
    }
    text.into_iter().collect()
}

/// A text that resembles an epoch.
pub fn epoch(chance: &mut Chance) -> String {
    let number = match chance.between(0, 9) {
        0 => return text(chance),
        1..=3 => bigint(chance).to_string(),
        _ => {
            let zone = *chance.pick(&["Z", "z", "+00", "+05:45", "-0930", "-00:00", "+26:00", "[UTC]", " UTC", ""]);
            let between = *chance.pick(&["T", "t", " "]);
            timestamp(chance).replace("+00", zone).replacen(' ', between, 1)
        }
    };
    if chance.one_in(2) { nearly(chance, &number) } else { number }
}

pub fn bigint(chance: &mut Chance) -> i64 {
    match chance.between(0, 3) {
        0 => *chance.pick(&[0, 1, -1, i64::MAX, i64::MIN, (1 << 53) - 1, 1 << 53, 1 << 62]),
        1 => chance.between(i64::MIN, i64::MAX),
        _ => chance.between(0, i64::MAX) >> chance.between(0, 62),
    }
}

pub fn timestamp(chance: &mut Chance) -> String {
    let ends = ["infinity", "-infinity", "4714-11-24 00:00:00+00 BC", "294276-12-31 23:59:59.999999+00", "epoch"];
    if chance.one_in(4) {
        return chance.pick(&ends).to_string();
    }
    let last = if chance.one_in(3) { 294_276 } else { 2_050 };
    let mut number = |from, to| chance.between(from, to);
    let (year, month, day, hour) = (number(1_970, last), number(1, 12), number(1, 28), number(0, 23));
    let fraction = if number(0, 3) == 0 { number(0, 999_999) } else { number(0, 999) * 1_000 };
    format!("{year}-{month:02}-{day:02} {hour:02}:{:02}:{:02}.{fraction:06}+00", number(0, 59), number(0, 59))
}

/// A value of an SQL type, as text.
pub fn value(chance: &mut Chance, kind: &str) -> String {
    match kind {
        "bigint" => bigint(chance).to_string(),
        "integer" if chance.one_in(8) => chance.pick(&["-1", "-2147483648", "2147483647", "4096"]).to_string(),
        // A value that fits every field.
        "integer" if chance.one_in(2) => "0".into(),
        "integer" => (chance.between(0, i64::from(i32::MAX)) >> chance.between(0, 31)).to_string(),
        "timestamp with time zone" => timestamp(chance),
        "interval" => {
            let units = ["microseconds", "ms", "seconds", "minutes", "days", "months", "years"];
            format!("{} {}", chance.between(-1, 3_000), chance.pick(&units))
        }
        "text" => text(chance),
        // Mostly a key of a length that AES has, which is also a tweak.
        "bytea" => {
            let usual = *chance.pick(&[16, 24, 32]);
            let length = if chance.one_in(4) { *chance.pick(&[0, 1, 15, 17, 33, 1024, 1025, 100_000]) } else { usual };
            let bytes = (0..length).map(|_| format!("{:02x}", chance.between(0, 255)));
            format!("\\x{}", bytes.collect::<String>())
        }
        // Half of these have the version and the variant of an ID, and half of those also end in zeros.
        "uuid" if chance.one_in(2) => {
            let bits = chance.between(0, i64::MAX) as u64;
            let end = if chance.one_in(2) { 0 } else { bits >> 16 };
            format!("{:08x}-{:04x}-8{:03x}-8000-{end:012x}", bits >> 32, bits & 0xffff, bits >> 16 & 0xfff)
        }
        "uuid" => {
            let number = |chance: &mut Chance| chance.between(0, i64::MAX) as u64;
            format!("{:016x}{:016x}", number(chance), number(chance))
        }
        _ => panic!("what is a value of type {kind}?"),
    }
}
