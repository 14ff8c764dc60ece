//! Presets: the fields of the systems they are named after, tested with IDs that other systems have published with their times.
//! Each ID has a comment that names its source.

mod common;

use std::ops::RangeInclusive;

use common::{PRESETS, largest};
use flake::{Epoch, IdFormat, Layout, Node, Part, Preset};

/// A published ID: the system, the ID, the published time in milliseconds since 1970, how far the time in the ID can be from
/// it, and datacenter, worker and sequence, if they are published too.
type PublishedId = (&'static str, i64, i64, RangeInclusive<i64>, Option<(u32, u32, u32)>);

/// Published to the millisecond, like the time in the ID.
const EXACTLY: RangeInclusive<i64> = 0..=0;

/// Published in whole seconds, rounded down.
const IN_THAT_SECOND: RangeInclusive<i64> = 0..=999;

/// The published time is that of the row. The database made its ID a moment before.
const SHORTLY_BEFORE: RangeInclusive<i64> = -100..=0;

const PUBLISHED: [PublishedId; 9] = [
    // en.wikipedia.org/wiki/Snowflake_ID, Format: 2022-06-28 16:07:40.105 UTC, machine 01 0111 1010, sequence 0.
    ("twitter", 1_541_815_603_606_036_480, 1_656_432_460_105, EXACTLY, Some((0, 0b01_0111_1010, 0))),
    // Twitter's documentation of its API 1.1, "Tweet object", the example: created_at "Wed Oct 10 20:19:24 +0000 2018".
    ("twitter", 1_050_118_621_198_921_728, 1_539_202_764_000, IN_THAT_SECOND, None),
    // discord.com/developers/docs/reference#snowflakes: 2016-04-30 11:18:25.796 UTC, internal worker 1, process 0, increment 7.
    ("discord", 175_928_847_299_117_063, 1_462_015_105_796, EXACTLY, Some((1, 0, 7))),
    // Instagram's own client, github.com/facebookarchive/python-instagram, fixtures/media_shortcode.json: created_time
    // 1401623658.
    ("instagram", 733_194_846_952_938_437, 1_401_623_658_000, IN_THAT_SECOND, None),
    // Another decoder, github.com/obsidianforensics/unfurl, unfurl/tests/unit/test_instagram.py: post DW1nTDiDvnF, which is
    // written in digits of base 64 (A-Z, a-z, 0-9, -, _); 1775580510621, shard 958, sequence 453.
    ("instagram", 3_870_172_288_071_432_645, 1_775_580_510_621, EXACTLY, Some((0, 958, 453))),
    // docs.joinmastodon.org/entities/Status, the example: created_at 2019-12-08T03:48:33.901Z.
    ("mastodon", 103_270_115_826_048_975, 1_575_776_913_901, SHORTLY_BEFORE, None),
    // Another decoder, github.com/obsidianforensics/unfurl, unfurl/tests/unit/test_sonyflake.py, 45eec4a4600041b in hexadecimal:
    // 2020-08-12 17:35:29.98, machine 4.27. Sonyflake itself publishes no ID with its time.
    ("sonyflake", 0x045e_ec4a_4600_041b, 1_597_253_729_980, EXACTLY, Some((0, 4 << 8 | 27, 0))),
    // github.com/pgEdge/snowflake, docs/snowflake_functions.md: 2024-01-11 13:08:59.845-05.
    ("pgedge", PGEDGE, PGEDGE_MS, EXACTLY, None),
    // The comment on decodeSnowflakeId in Leaf's server/controller/LeafMonitorController.java gives timestamp 1567733700834,
    // worker 39 and sequence 3448, but no ID. The ID is computed here as in its SnowflakeIDGenImpl.java: (timestamp - twepoch) <<
    // 22 | worker << 12 | sequence.
    ("leaf", (LEAF_MS - 1_288_834_974_657) << 22 | 39 << 12 | 3_448, LEAF_MS, EXACTLY, Some((0, 39, 3_448))),
];

const PGEDGE: i64 = 136_169_504_773_242_881;
const PGEDGE_MS: i64 = 1_704_996_539_845;
const LEAF_MS: i64 = 1_567_733_700_834;

#[test]
fn published_ids_have_their_published_times() {
    for (system, id, unix_ms, off, published) in PUBLISHED {
        let format = IdFormat::parse(system).unwrap();
        let parts = format.split(id).unwrap();
        let read = (format.instant(parts.tick) / 1_000) as i64;
        assert!(off.contains(&(read - unix_ms)), "{system}: {id} is of {read}, not {unix_ms}");
        if let Some((datacenter, worker, sequence)) = published {
            assert_eq!((parts.node, parts.sequence), (Node { datacenter, worker }, sequence), "{system}");
            assert_eq!(format.join(i128::from(unix_ms) * 1_000, parts.node, sequence), Ok(id), "{system}");
        }
    }
}

/// In pgEdge's source the counter is the lowest field. In its documentation and the examples there, the node is: node 1, and count
/// 0 according to `snowflake.format` there, although 3 according to `snowflake.get_count`.
#[test]
fn the_example_of_pgedge_is_of_its_earlier_order() {
    let format = IdFormat { layout: Layout::parse("41:12s:10").unwrap(), ..IdFormat::parse("pgedge").unwrap() };
    let parts = format.split(PGEDGE).unwrap();
    assert_eq!(format.instant(parts.tick), i128::from(PGEDGE_MS) * 1_000);
    assert_eq!((parts.node.worker, parts.sequence), (1, 0));
}

/// The example in the README of uid-generator. The configuration there has 29 bits of seconds since 2016-09-20, 21 bits of worker
/// and 13 of sequence: 2017-01-19 12:15:46, worker 4, sequence 9. Both times are in the time zone of the program, here Beijing's.
/// Its default layout, the preset, has no published example.
#[test]
fn the_example_of_uid_generator_is_read_by_its_bits() {
    let layout = Layout::parse("29:21:13@1s").unwrap();
    let epoch = Epoch::from_unix_ms(1_474_300_800_000).unwrap();
    let format = IdFormat { layout, epoch };
    let parts = format.split(180_363_646_902_239_241).unwrap();
    assert_eq!(format.instant(parts.tick), 1_484_799_346_000_000);
    assert_eq!((parts.node.worker, parts.sequence), (4, 9));
}

/// The control: the layout of another system reads a published ID differently.
#[test]
fn another_systems_layout_reads_another_time() {
    for (system, id, unix_ms, ..) in PUBLISHED {
        for other in Preset::ALL.iter().filter(|other| IdFormat::parse(system) != Ok(other.format)) {
            let parts = other.format.split(id).unwrap();
            let read = (other.format.instant(parts.tick) / 1_000) as i64;
            assert!((read - unix_ms).abs() > 60_000, "{} reads an ID of {system} right", other.name);
        }
    }
}

#[test]
fn presets_are_what_the_systems_of_that_name_use() {
    assert_eq!(Preset::ALL.map(|preset| preset.name), PRESETS.map(|(name, ..)| name));
    for (name, shape, epoch) in PRESETS {
        let preset = Preset::named(name).unwrap();
        assert_eq!(preset.format.layout, shape.layout(), "{name}");
        assert_eq!(preset.format.epoch.unix_ms(), epoch, "{name}");
        assert_eq!(IdFormat::parse(name), Ok(preset.format));
        assert_eq!(IdFormat::parse(&format!(" {} ", name.to_uppercase())), Ok(preset.format));
        assert_eq!(preset.datacenter.is_some(), shape.datacenter.is_some(), "{name}");
        assert_eq!(preset.worker.is_some(), shape.worker > 0, "{name}");
        // Its printed form can be written in place of its name, with the epoch beside it.
        assert_eq!(Layout::parse(&preset.format.layout.to_string()), Ok(preset.format.layout));
        assert!(preset.format.layout.max(Part::Timestamp) == largest(shape.timestamp));
    }
    assert_eq!(Preset::named("twitter "), None);
    assert_eq!(Preset::named("Twitter"), Preset::named("twitter"));
    assert_eq!(Preset::named("UID-GENERATOR"), Preset::named("uid-generator"));
    assert_eq!(Preset::named("Twıtter"), None);
    assert_eq!(Preset::named(""), None);
}

#[test]
fn bits_count_from_twitters_epoch() {
    assert_eq!(IdFormat::parse("41:5:5:12").unwrap().epoch, Epoch::TWITTER);
    assert_eq!(IdFormat::parse(" discord ").unwrap().epoch.unix_ms(), 1_420_070_400_000);
}
