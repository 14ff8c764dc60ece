//! Any text is a layout or refused. A layout reads back from what it prints, and its largest ID comes apart and together again.
#![no_main]

use flake::{Layout, Part};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(layout) = Layout::parse(text) else { return };
    assert_eq!(Layout::parse(&layout.to_string()), Ok(layout));
    assert!(layout.last_id() > 0);
    let parts = layout.split(layout.last_id());
    assert_eq!(parts.tick, layout.max(Part::Timestamp));
    assert_eq!(u64::from(parts.sequence), layout.max(Part::Sequence));
    let stamp = layout.stamp(parts.node).expect("the node of an ID fits its layout");
    assert_eq!(stamp.id(layout.last_word()), layout.last_id());
});
