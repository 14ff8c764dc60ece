//! Presets: the fields of the systems they are named after, tested with IDs that those systems or their users publish.

mod common;

use common::{PRESETS, largest};
use flake::{Epoch, IdFormat, Layout, Part, Preset};

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
