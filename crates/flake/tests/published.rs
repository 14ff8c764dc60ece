//! IDs that other systems have published with their times, read back. Each with the place where it stands.

use flake::{Node, Scheme};

/// A published ID.
struct Published {
    system: &'static str,
    id: i64,
    /// Milliseconds since 1970 of the time that stands beside it.
    unix_ms: i64,
    /// How much earlier the ID may have been made than the row or message whose time that is.
    earlier_ms: i64,
    /// Datacenter, worker and sequence, where they are published, too.
    parts: Option<(u32, u32, u32)>,
}

const PUBLISHED: [Published; 6] = [
    // Wikipedia, "Snowflake ID": 2022-06-28 16:07:40.105 UTC, machine 378, sequence 0.
    Published {
        system: "twitter",
        id: 1_541_815_603_606_036_480,
        unix_ms: 1_656_432_460_105,
        earlier_ms: 0,
        parts: Some((0, 378, 0)),
    },
    // Discord's API reference, "Snowflakes": 2016-04-30 11:18:25.796 UTC, internal worker 1, process 0, increment 7.
    Published {
        system: "discord",
        id: 175_928_847_299_117_063,
        unix_ms: 1_462_015_105_796,
        earlier_ms: 0,
        parts: Some((1, 0, 7)),
    },
    // A post in the answer of Instagram's API that the README of kumarakshay2023/Instagram-post shows: its caption's
    // created_at, in whole seconds, is 1743091090.
    Published {
        system: "instagram",
        id: 3_597_631_270_905_977_008,
        unix_ms: 1_743_091_090_000,
        earlier_ms: 1_000,
        parts: None,
    },
    // Mastodon's documentation, entity Status: created_at 2019-12-08T03:48:33.901Z.
    Published {
        system: "mastodon",
        id: 103_270_115_826_048_975,
        unix_ms: 1_575_776_913_901,
        earlier_ms: 100,
        parts: None,
    },
    // The README of pgEdge's snowflake: 2024-01-11 13:08:59.845-05, node 1, count 0.
    Published {
        system: "pgedge",
        id: 136_169_504_773_242_881,
        unix_ms: 1_704_996_539_845,
        earlier_ms: 0,
        parts: Some((0, 1, 0)),
    },
    // The comment on decodeSnowflakeId in Leaf's LeafMonitorController.java gives timestamp 1567733700834, worker 39 and
    // sequence 3448; the ID is what its SnowflakeIDGenImpl.java makes of them: (timestamp - twepoch) << 22 | 39 << 12 | 3448.
    Published {
        system: "leaf",
        id: (1_567_733_700_834 - 1_288_834_974_657) << 22 | 39 << 12 | 3_448,
        unix_ms: 1_567_733_700_834,
        earlier_ms: 0,
        parts: Some((0, 39, 3_448)),
    },
];

#[test]
fn published_ids_have_their_published_times() {
    for Published { system, id, unix_ms, earlier_ms, parts: published } in PUBLISHED {
        let scheme = Scheme::parse(system).unwrap();
        let parts = scheme.split(id).unwrap();
        let read = (scheme.instant(parts.tick) / 1_000) as i64;
        assert!((unix_ms - earlier_ms..=unix_ms).contains(&read), "{system}: {id} is of {read}, not {unix_ms}");
        if let Some((datacenter, worker, sequence)) = published {
            assert_eq!((parts.node, parts.sequence), (Node { datacenter, worker }, sequence), "{system}");
            assert_eq!(scheme.join(i128::from(unix_ms) * 1_000, parts.node, sequence), Ok(id), "{system}");
        }
    }
}

/// The example in the README of uid-generator, which its cached-uid-spring.xml configures: 29 bits of seconds since
/// 2016-09-20 in Beijing, 21 of worker, 13 of sequence. 2017-01-19 12:15:46 there, worker 4, sequence 9.
#[test]
fn the_example_of_uid_generator_is_read_by_its_bits() {
    let layout = flake::Layout::parse("29:21:13@1s").unwrap();
    let epoch = flake::Epoch::from_unix_ms(1_474_300_800_000).unwrap();
    let scheme = Scheme { layout, epoch };
    let parts = scheme.split(180_363_646_902_239_241).unwrap();
    assert_eq!(scheme.instant(parts.tick), 1_484_799_346_000_000);
    assert_eq!((parts.node.worker, parts.sequence), (4, 9));
}

/// The control: what one system published is not what another's layout reads.
#[test]
fn another_systems_layout_reads_another_time() {
    for Published { system, id, unix_ms, .. } in PUBLISHED {
        for other in flake::Preset::ALL.iter().filter(|other| Scheme::parse(system) != Ok(other.scheme)) {
            let parts = other.scheme.split(id).unwrap();
            let read = (other.scheme.instant(parts.tick) / 1_000) as i64;
            assert!((read - unix_ms).abs() > 60_000, "{} reads an ID of {system} right", other.name);
        }
    }
}
