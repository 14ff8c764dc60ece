//! What a server reports about itself to the registry.

use crate::fleet::call::Clocks;
use crate::pg::text_arg::ascii;
use crate::pg::{recovery, server, setting};

/// Returns the facts that this server reports. The registry's views show them.
pub fn about(clocks: Option<Clocks>) -> String {
    let mut about = serde_json::json!({
        "host": ascii(&host()),
        "port": server::port(),
        "data_directory": ascii(&server::data_directory()),
        "system_identifier": server::system_identifier().to_string(),
        "role": if recovery::in_recovery() { "standby" } else { "primary" },
        "server_version": ascii(&setting::configured(c"server_version").unwrap_or_default()),
        "extension_version": env!("CARGO_PKG_VERSION"),
    });
    if let Some(clocks) = clocks {
        about["clock_offset_us"] = clocks.offset.into();
        about["round_trip_us"] = clocks.round_trip.into();
    }
    about.to_string()
}

pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
