//! What the registrar logs about segments. Each line says what happened once, and not at every request.

use pgrx::PgLogLevel;

use crate::message::pages;
use crate::message::trouble::Trouble;
use crate::message::wording::Report;
use crate::pg::text_arg::ascii;
use crate::server::log;

/// Logs why the registry issues no blocks.
pub fn failed(trouble: &Trouble) {
    let Report { code, message, detail, hint } = trouble.report();
    let message = format!("cannot fetch numbers of segments: {message}");
    let detail = format!("{detail} Sessions draw on until their segments are used up.");
    log::tell(PgLogLevel::WARNING, Report { code, message, detail: detail.trim().into(), hint });
}

/// Logs that the registry does not learn which blocks this server holds.
pub fn unreported(trouble: &Trouble) {
    let Report { code, message, detail, hint } = trouble.report();
    let message = format!("cannot report the segments of this server: {message}");
    log::tell(PgLogLevel::WARNING, Report { code, message, detail, hint });
}

/// Logs that another session has locked a tag in the registry.
pub fn locked(tag: &str) {
    log::warn_of(
        format!("segment \"{}\" is locked in the registry", ascii(tag)),
        "The server asks again every few seconds. Sessions draw on until the segment is used up.".into(),
        "In the database of the registry, find the session that has locked the row of the tag, and end its transaction.",
    );
}

/// Logs why the registry has not created the tag of a period.
pub fn not_created(tag: &str, trouble: &Trouble) {
    let Report { code, message, detail, hint } = trouble.report();
    let message = format!("cannot create segment \"{}\": {message}", ascii(tag));
    log::tell(PgLogLevel::WARNING, Report { code, message, detail, hint });
}

/// Logs that the registry issues blocks again.
pub fn recovered(failures: u64) {
    let times = if failures == 1 { "1 failed request".into() } else { format!("{failures} failed requests") };
    log::log(format!("fetched numbers of a segment after {times}"), String::new());
}

/// Logs that the blocks of a tag belong to an earlier segment with this tag.
pub fn created_again(tag: &str) {
    log::log(
        format!("segment \"{}\" was created again", ascii(tag)),
        "The earlier segment was dropped, or the registry had lost its creation. This server has discarded the numbers that it held of \
         the earlier segment."
            .into(),
    );
}

/// Logs that this server holds blocks of a segment that the registry does not know.
pub fn gone(tag: &str) {
    log::log_with_hint(
        format!("segment \"{}\" does not exist any more", ascii(tag)),
        "It was dropped, or the registry has lost its creation. This server has discarded the numbers that it held of the segment."
            .into(),
        format!(
            "If nobody has dropped the segment, read {} before you create it again.",
            pages::ORDERS.section("A tag skips numbers after a failover")
        ),
    );
}

/// Logs that the registry has forgotten a block of this server.
pub fn raised(tag: &str) {
    log::warn_of(
        format!("the registry had forgotten numbers of segment \"{}\"", ascii(tag)),
        "This server goes on in its numbers, which stay unique, because the registry skips all numbers that it can have forgotten.".into(),
        "Check whether the registry's server has failed over or was restored. Run it with a synchronous standby if numbers must not be \
         skipped.",
    );
}
