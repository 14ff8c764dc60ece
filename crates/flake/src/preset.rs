//! The named layouts of other systems, taken from the documentation and the source code of those systems.
//!
//! If a system uses 64 bits, the preset has only the 63 bits of a positive `bigint`. IDs from such a system can be
//! decoded as long as they are positive. The last instant of the layout is the instant of the last positive ID.

use crate::{Epoch, IdFormat, Layout, LayoutError, Tick};

/// A named layout with its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// The layout and the epoch.
    pub format: IdFormat,
    /// What the system stores in the datacenter field, or `None` if the layout has no such field.
    pub datacenter: Option<&'static str>,
    /// What the system stores in the worker field, or `None` if the layout has no such field.
    pub worker: Option<&'static str>,
    /// What the system stores in the sequence field.
    pub sequence: &'static str,
    /// The source of this information.
    pub source: &'static str,
}

impl Preset {
    /// All presets. The meaning of a name must never change, because generated columns and indexes contain values that
    /// were decoded with this name.
    pub const ALL: [Preset; 8] = [
        Preset {
            name: "twitter",
            format: format(Layout::TWITTER, Epoch::TWITTER),
            datacenter: None,
            worker: Some("machine: 5 bits of datacenter and 5 of worker"),
            sequence: "position in the tick",
            source: "https://github.com/twitter-archive/snowflake/tree/snowflake-2010: IdWorker.scala",
        },
        Preset {
            name: "discord",
            format: format(Layout::widths(41, Some(5), 5, 12, Tick::Ms1), Epoch::at(1_420_070_400_000)),
            datacenter: Some("internal worker ID"),
            worker: Some("internal process ID"),
            sequence: "counter of the process",
            source: "https://discord.com/developers/docs/reference#snowflakes",
        },
        Preset {
            name: "instagram",
            format: format(Layout::widths(40, None, 13, 10, Tick::Ms1), Epoch::at(1_314_220_021_721)),
            datacenter: None,
            worker: Some("logical shard"),
            sequence: "counter of the shard",
            source: "https://instagram-engineering.com/sharding-ids-at-instagram-1cf5a71e5a5c",
        },
        Preset {
            name: "mastodon",
            format: format(Layout::widths(47, None, 0, 16, Tick::Ms1), Epoch::at(0)),
            datacenter: None,
            worker: None,
            sequence: "tail: row counter of the table, plus a hash of the time; random for backdated rows",
            source: "https://github.com/mastodon/mastodon: lib/mastodon/snowflake.rb",
        },
        Preset {
            name: "sonyflake",
            format: format(Layout::SONYFLAKE, Epoch::SONYFLAKE),
            datacenter: None,
            worker: Some("machine"),
            sequence: "position in the tick",
            source: "https://github.com/sony/sonyflake: sonyflake.go, version 1",
        },
        Preset {
            name: "uid-generator",
            format: format(Layout::widths(28, None, 22, 13, Tick::S1), Epoch::at(1_463_673_600_000)),
            datacenter: None,
            worker: Some("start of a process"),
            sequence: "position in the tick",
            source: "https://github.com/baidu/uid-generator: DefaultUidGenerator.java",
        },
        Preset {
            name: "pgedge",
            format: format(Layout::TWITTER, Epoch::at(1_672_531_200_000)),
            datacenter: None,
            worker: Some("snowflake.node"),
            sequence: "position in the tick, from a PostgreSQL sequence",
            source: "https://github.com/pgEdge/snowflake: snowflake.c",
        },
        Preset {
            name: "leaf",
            format: format(Layout::TWITTER, Epoch::TWITTER),
            datacenter: None,
            worker: Some("worker"),
            sequence: "position in the tick, from a random start",
            source: "https://github.com/Meituan-Dianping/Leaf: SnowflakeIDGenImpl.java",
        },
    ];

    /// Returns the preset with this name. Letters can be upper or lower case.
    pub fn named(name: &str) -> Option<&'static Preset> {
        const ALL: &[Preset] = &Preset::ALL;
        ALL.iter().find(|preset| preset.name.eq_ignore_ascii_case(name))
    }
}

impl IdFormat {
    /// Parses the name of a preset, or a layout that is given as widths in bits. The latter gets Twitter's epoch.
    pub fn parse(text: &str) -> Result<IdFormat, LayoutError> {
        match Preset::named(text.trim()) {
            Some(preset) => Ok(preset.format),
            None => Ok(IdFormat { layout: Layout::parse(text)?, epoch: Epoch::TWITTER }),
        }
    }
}

const fn format(layout: Layout, epoch: Epoch) -> IdFormat {
    IdFormat { layout, epoch }
}
