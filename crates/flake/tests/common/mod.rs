//! Shared by the tests of the core: layouts to try, and IDs written digit by digit.

// Every test file compiles a copy of this module and uses a part of it.
#![allow(dead_code)]

pub mod granted;
pub mod machine;

use flake::{Epoch, IdFormat, Layout, Nanos, Node, Tick};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// A ceiling above every word.
pub const NO_CEILING: u64 = u64::MAX;

/// The widths of a layout as the test chose them. A [`Layout`] can give them only through the code under test.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub timestamp: u32,
    pub datacenter: Option<u32>,
    pub worker: u32,
    pub sequence: u32,
    pub tick: Tick,
    /// False if the sequence is between timestamp and node.
    pub sequence_lowest: bool,
}

/// Every preset: name, widths and Unix milliseconds of its epoch, from the sources of the systems they are named after.
pub const PRESETS: [(&str, Shape, i64); 8] = [
    ("twitter", shape(41, None, 10, 12, Tick::Ms1, true), 1_288_834_974_657),
    ("discord", shape(41, Some(5), 5, 12, Tick::Ms1, true), 1_420_070_400_000),
    ("instagram", shape(40, None, 13, 10, Tick::Ms1, true), 1_314_220_021_721),
    ("mastodon", shape(47, None, 0, 16, Tick::Ms1, true), 0),
    ("sonyflake", shape(39, None, 16, 8, Tick::Ms10, false), 1_409_529_600_000),
    ("uid-generator", shape(28, None, 22, 13, Tick::S1, true), 1_463_673_600_000),
    ("pgedge", shape(41, None, 10, 12, Tick::Ms1, true), 1_672_531_200_000),
    ("leaf", shape(41, None, 10, 12, Tick::Ms1, true), 1_288_834_974_657),
];

const fn shape(
    timestamp: u32,
    datacenter: Option<u32>,
    worker: u32,
    sequence: u32,
    tick: Tick,
    sequence_lowest: bool,
) -> Shape {
    Shape { timestamp, datacenter, worker, sequence, tick, sequence_lowest }
}

impl Shape {
    pub fn layout(&self) -> Layout {
        let layout = Layout::of(self.timestamp, self.datacenter, self.worker, self.sequence, self.tick).unwrap();
        if self.sequence_lowest { layout } else { layout.with_sequence_above_node() }
    }

    pub fn datacenter_bits(&self) -> u32 {
        self.datacenter.unwrap_or(0)
    }

    /// The number of words of one tick.
    pub fn capacity(&self) -> u64 {
        largest(self.sequence) + 1
    }

    /// The number of words, which is the last word plus one.
    pub fn words(&self) -> u64 {
        (largest(self.timestamp) + 1) * self.capacity()
    }

    /// The ID as it would be written on paper: the digits of each field in the order of the layout.
    pub fn id(&self, tick: u64, node: Node, sequence: u64) -> i64 {
        let node = digits(node.datacenter.into(), self.datacenter_bits()) + &digits(node.worker.into(), self.worker);
        let sequence = digits(sequence, self.sequence);
        let low = if self.sequence_lowest { node + &sequence } else { sequence + &node };
        i64::from_str_radix(&(digits(tick, self.timestamp) + &low), 2).unwrap()
    }
}

/// `value` as exactly `bits` binary digits.
pub fn digits(value: u64, bits: u32) -> String {
    let text = match value {
        0 => String::new(),
        _ => format!("{value:b}"),
    };
    assert!(text.len() <= bits as usize, "{value} does not fit {bits} bits");
    "0".repeat(bits as usize - text.len()) + &text
}

/// The largest number of `bits` digits.
pub fn largest(bits: u32) -> u64 {
    2u64.pow(bits) - 1
}

/// The length of a tick.
pub fn micros(tick: Tick) -> u64 {
    match tick {
        Tick::Ms1 => 1_000,
        Tick::Ms10 => 10_000,
        Tick::S1 => 1_000_000,
    }
}

/// The length of a tick.
pub fn nanos(tick: Tick) -> Nanos {
    micros(tick) * 1_000
}

pub fn ticks() -> impl Strategy<Value = Tick> {
    prop_oneof![Just(Tick::Ms1), Just(Tick::Ms10), Just(Tick::S1)]
}

/// Valid layouts: three and four widths, both orders, all ticks, often filling all 63 bits, and the presets.
pub fn shapes() -> impl Strategy<Value = Shape> {
    // Each width is drawn from the bits that the widths before it have left over.
    let widths = (any::<[u32; 4]>(), any::<bool>(), any::<bool>(), 0..4u8, ticks());
    let shapes = widths.prop_map(|(raw, four, full, order, tick)| {
        let draw = |raw: u32, min: u32, max: u32| min + raw % (max - min + 1);
        let sequence = draw(raw[0], 1, 31);
        let worker = draw(raw[1], 0, 31.min(62 - sequence));
        let datacenter = four.then(|| draw(raw[2], 0, 31.min(62 - sequence - worker)));
        let left = 63 - sequence - worker - datacenter.unwrap_or(0);
        let timestamp = if full { left } else { draw(raw[3], 1, left) };
        shape(timestamp, datacenter, worker, sequence, tick, order > 0)
    });
    prop_oneof![4 => shapes, 1 => (0..PRESETS.len()).prop_map(|preset| PRESETS[preset].1)]
}

/// A number of `bits` digits: often the smallest or largest, otherwise evenly distributed.
pub fn number(bits: u32) -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 1 => Just(largest(bits)), 4 => 0..=largest(bits)]
}

/// Nodes that fit the layout.
pub fn nodes(shape: Shape) -> impl Strategy<Value = Node> {
    (number(shape.datacenter_bits()), number(shape.worker))
        .prop_map(|(datacenter, worker)| Node { datacenter: datacenter as u32, worker: worker as u32 })
}

/// Fields of an ID that fit the layout: tick, node, sequence.
pub fn fields(shape: Shape) -> impl Strategy<Value = (u64, Node, u64)> {
    (number(shape.timestamp), nodes(shape), number(shape.sequence))
}

/// IDs of any layout: any, small, large, and with a single bit.
pub fn ids() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..=i64::MAX, 1 => 0..100i64, 1 => i64::MAX - 100..=i64::MAX, 1 => (0..63u32).prop_map(|bit| 1 << bit)]
}

pub fn epochs() -> impl Strategy<Value = Epoch> {
    let last = Epoch::MAX.unix_ms();
    prop_oneof![1 => Just(0), 1 => Just(last), 1 => Just(PRESETS[0].2), 3 => 0..=last]
        .prop_map(|ms| Epoch::from_unix_ms(ms).unwrap())
}

/// A layout with an epoch.
pub fn formats() -> impl Strategy<Value = (Shape, IdFormat)> {
    (shapes(), epochs()).prop_map(|(shape, epoch)| (shape, IdFormat { layout: shape.layout(), epoch }))
}

/// Tries `test` on `cases` values. Failures are shrunk and printed. They are not written into the repository.
pub fn forall<S: Strategy>(cases: u32, values: S, test: impl Fn(S::Value) -> TestCaseResult) {
    let config =
        ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 1_000, ..ProptestConfig::default() };
    if let Err(error) = proptest::test_runner::TestRunner::new(config).run(&values, test) {
        panic!("{error}");
    }
}
