//! The settings: their names, their defaults, their ranges, and when each setting can change.
//!
//! The module [`crate::config::identity`], which runs first, reads the values of the four identity settings. This module defines
//! these settings so that `SHOW`, `pg_settings` and `ALTER SYSTEM` know them, and so that only the server's configuration can set
//! them.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_void};

use flake::{ClockRules, Layout, MAX_WINDOW, Nanos, OnRegression, Pace};
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};
use pgrx::{pg_sys, prelude::*};

use crate::config::epoch;
use crate::faults::{self, Fault};
use crate::message::error::Error;

/// The name of the setting for this server's worker ID.
pub const WORKER_ID: &CStr = c"snowflake_pg.worker_id";
/// The name of the setting for this server's datacenter ID.
pub const DATACENTER_ID: &CStr = c"snowflake_pg.datacenter_id";
/// The name of the setting for the layout.
pub const LAYOUT: &CStr = c"snowflake_pg.layout";
/// The name of the setting for the epoch.
pub const EPOCH: &CStr = c"snowflake_pg.epoch";

/// The name of the setting for the directory of the witness.
const WITNESS_DIRECTORY: &CStr = c"snowflake_pg.witness_directory";

/// The default layout, which is Twitter's layout.
pub const DEFAULT_LAYOUT: &CStr = c"41:10:12";

/// The minimum of `snowflake_pg.max_ahead`, in milliseconds. A throttled session sleeps for at least one millisecond. With a
/// smaller `max_ahead`, this sleep would lose IDs that the layout allows.
const MIN_MAX_AHEAD_MS: i32 = 2;
const DEFAULT_MAX_AHEAD_MS: i32 = 100;
/// The maximum of `snowflake_pg.max_ahead`, in milliseconds. The value is limited because users can rely on the time of an ID,
/// even though this time is not exact.
pub const MAX_MAX_AHEAD_MS: i32 = 10_000;

/// How far IDs and the mark can be ahead of the clock in normal operation, in nanoseconds. After a crash, IDs begin up to one
/// window ahead of the clock, and can run ahead of that beginning by `snowflake_pg.max_ahead`.
pub const FARTHEST_AHEAD: Nanos = MAX_WINDOW + MAX_MAX_AHEAD_MS as Nanos * 1_000_000;

/// The default of `snowflake_pg.max_clock_jump`, the largest forward step of the clock that IDs follow, in seconds.
const DEFAULT_MAX_CLOCK_JUMP_S: i32 = 3_600;
/// The maximum of `snowflake_pg.max_clock_jump`: one year, in seconds. A superuser can accept larger jumps manually.
const MAX_MAX_CLOCK_JUMP_S: i32 = 31_536_000;

/// A parameter that users may set by mistake instead of `snowflake_pg.worker_id`, because the name of the extension begins with
/// `snowflake`.
pub const OTHER_WORKER_ID: &CStr = c"snowflake.worker_id";

/// The value that means that the worker ID is not set.
pub const UNSET: i32 = -1;

/// Where the sequence of a new tick begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum SequenceStart {
    /// The sequence begins at 0.
    #[name = c"zero"]
    Zero,
    /// The sequence begins at a random number.
    #[name = c"random"]
    Random,
}

/// What the server does after the wall clock was set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum ClockRegression {
    /// The server continues at the speed of the monotonic clock.
    #[name = c"continue"]
    Continue,
    /// A session waits for the clock if the wait takes no longer than 10 s. Otherwise, the session raises an error.
    #[name = c"wait"]
    Wait,
    /// A session raises an error.
    #[name = c"error"]
    Error,
}

static WORKER: GucSetting<i32> = GucSetting::<i32>::new(UNSET);
static DATACENTER: GucSetting<i32> = GucSetting::<i32>::new(0);
static LAYOUT_TEXT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(DEFAULT_LAYOUT));
static EPOCH_TEXT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static WITNESS_TEXT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"/dev/shm"));
static MAX_AHEAD: GucSetting<i32> = GucSetting::<i32>::new(DEFAULT_MAX_AHEAD_MS);
static SEQUENCE_START: GucSetting<SequenceStart> = GucSetting::<SequenceStart>::new(SequenceStart::Zero);

static ON_CLOCK_REGRESSION: GucSetting<ClockRegression> = GucSetting::<ClockRegression>::new(ClockRegression::Continue);
static MAX_CLOCK_JUMP: GucSetting<i32> = GucSetting::<i32>::new(DEFAULT_MAX_CLOCK_JUMP_S);

/// Returns what the server does after the wall clock was set back.
pub fn on_clock_regression() -> ClockRegression {
    ON_CLOCK_REGRESSION.get()
}

/// Returns the directory of the witness, or an empty string if the server runs without a witness.
pub fn witness_directory() -> String {
    WITNESS_TEXT.get().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the clock settings in the form that the hybrid clock takes.
pub fn clock_rules() -> ClockRules {
    ClockRules {
        slack: pace().max_ahead,
        // The value is not negative, because PostgreSQL keeps the setting in its range.
        max_jump: faults::any_jump(MAX_CLOCK_JUMP.get() as u64 * 1_000_000_000),
        on_regression: match on_clock_regression() {
            ClockRegression::Continue => OnRegression::Continue,
            ClockRegression::Wait | ClockRegression::Error => OnRegression::Hold,
        },
    }
}

/// Returns the settings that a reload can change, in the form that the generator takes. The values are read where PostgreSQL
/// stores them, because `GucSetting::get` would look up a thread-local for each setting.
#[inline]
pub fn pace() -> Pace {
    // SAFETY: the pointers refer to the two statics. Only the one thread of this process writes them, between statements.
    let (max_ahead, start) = unsafe { (*MAX_AHEAD.as_ptr(), *SEQUENCE_START.as_ptr()) };
    Pace {
        // The value is not negative, because PostgreSQL keeps the setting in its range.
        max_ahead: faults::any_lead(max_ahead as u64 * 1_000_000),
        random_start: start == SequenceStart::Random as i32,
        overdue: false,
    }
}

/// Defines every setting and reserves the prefix, so that PostgreSQL reports a misspelt name. This function is called in the
/// postmaster while it preloads libraries.
pub fn define() {
    GucRegistry::define_int_guc(
        WORKER_ID,
        c"Sets the worker ID of this server.",
        c"The worker ID must be unique among all servers whose IDs are used together. It can range from 0 to the largest \
          number that fits in the worker field of snowflake_pg.layout. A value of -1 means that no worker ID is set and that \
          the server does not issue IDs.",
        &WORKER,
        UNSET,
        i32::MAX,
        if faults::on(Fault::WorkerForEverybody) { GucContext::Userset } else { GucContext::Postmaster },
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        DATACENTER_ID,
        c"Sets the datacenter ID of this server.",
        c"The datacenter ID can range from 0 to the largest number that fits in the datacenter field of snowflake_pg.layout. It must be 0 \
          if the layout has no datacenter field.",
        &DATACENTER,
        0,
        i32::MAX,
        GucContext::Postmaster,
        GucFlags::default(),
    );
    // SAFETY: the hooks do not panic, and are guarded.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            LAYOUT,
            c"Sets the layout of IDs.",
            c"The value is either the name of a layout in view snowflake_layouts or a list of field widths in bits, in the form \
              timestamp:worker:sequence or timestamp:datacenter:worker:sequence. The widths must not add up to more than 63 bits. Append \
              @10ms or @1s to the list for a longer tick.",
            &LAYOUT_TEXT,
            GucContext::Postmaster,
            GucFlags::default(),
            Some(check_layout),
            None,
            None,
        );
        GucRegistry::define_string_guc_with_hooks(
            EPOCH,
            c"Sets the time of an ID whose timestamp field is 0.",
            c"The epoch is a time in ISO 8601 format with Z or an offset, or a number of milliseconds since 1970. If the value is \
              empty, a named layout uses its own epoch, and any other layout uses Twitter's epoch.",
            &EPOCH_TEXT,
            GucContext::Postmaster,
            GucFlags::default(),
            Some(check_epoch),
            None,
            None,
        );
    }
    GucRegistry::define_string_guc(
        WITNESS_DIRECTORY,
        c"Sets the directory for the witness file.",
        c"The witness is a file that holds a second copy of the high-water mark until the machine is restarted. The directory must \
          be in an in-memory file system. If the value is empty, the server runs without a witness.",
        &WITNESS_TEXT,
        GucContext::Postmaster,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"snowflake_pg.max_ahead",
        c"Sets how far issued IDs can get ahead of the clock before sessions are throttled.",
        c"",
        &MAX_AHEAD,
        MIN_MAX_AHEAD_MS,
        MAX_MAX_AHEAD_MS,
        GucContext::Sighup,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_enum_guc(
        c"snowflake_pg.sequence_start",
        c"Sets the number at which the sequence of a new tick begins.",
        c"With \"zero\", most IDs in a table with few inserts are multiples of a large power of two. With \"random\", they \
          are not.",
        &SEQUENCE_START,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_enum_guc(
        c"snowflake_pg.on_clock_regression",
        c"Sets what happens if the wall clock is set back by more than snowflake_pg.max_ahead.",
        c"With \"continue\", new IDs advance with the monotonic clock. With \"wait\", sessions wait for the clock \
          to catch up, but get an error immediately if the wait would exceed 10 seconds. With \"error\", sessions get an error \
          until the clock has caught up.",
        &ON_CLOCK_REGRESSION,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"snowflake_pg.max_clock_jump",
        c"Sets how far the wall clock can step forward before new IDs stop following it.",
        c"After a larger step, new IDs follow the clock again when a superuser calls snowflake_accept_clock().",
        &MAX_CLOCK_JUMP,
        1,
        MAX_MAX_CLOCK_JUMP_S,
        GucContext::Sighup,
        GucFlags::UNIT_S,
    );
    // SAFETY: the argument is a C string, which PostgreSQL copies.
    unsafe { pg_sys::MarkGUCPrefixReserved(c"snowflake_pg".as_ptr()) };
}

/// Refuses a malformed layout when `ALTER SYSTEM` writes it instead of at the next server start.
#[pg_guard]
unsafe extern "C-unwind" fn check_layout(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: PostgreSQL passes the hook a valid pointer to the new value.
    let text = unsafe { text_of(value) };
    accept(Layout::parse(&text).map(|_| ()).map_err(|error| Error::Layout { text, error }))
}

/// Refuses a malformed epoch when `ALTER SYSTEM` writes it instead of at the next server start.
#[pg_guard]
unsafe extern "C-unwind" fn check_epoch(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: PostgreSQL passes the hook a valid pointer to the new value.
    let text = unsafe { text_of(value) };
    let checked = epoch::parse(&text).map(|_| ());
    accept(checked.map_err(|problem| Error::Epoch { text, problem }))
}

/// Returns the text of a string setting.
///
/// # Safety
///
/// `value` points to a null pointer or to a C string.
unsafe fn text_of(value: *mut *mut c_char) -> String {
    // SAFETY: the caller guarantees that `value` is a valid pointer.
    let text = unsafe { *value };
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the pointer is not null, and the caller guarantees that it then points to a C string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Returns the result of a check hook. If there is an error, its detail and hint are stored where PostgreSQL finds them when it
/// raises its own error.
fn accept(checked: Result<(), Error>) -> bool {
    let Err(error) = checked else {
        return true;
    };
    let report = error.report();
    let c_text = |text: &str| CString::new(text).unwrap_or_default();
    // SAFETY: pstrdup allocates in the current memory context, which outlives the error that PostgreSQL raises from these
    // pointers as soon as the hook returns false.
    unsafe {
        pg_sys::GUC_check_errcode(report.code as i32);
        pg_sys::GUC_check_errdetail_string = pg_sys::pstrdup(c_text(&report.detail).as_ptr());
        pg_sys::GUC_check_errhint_string = pg_sys::pstrdup(c_text(&report.hint).as_ptr());
    }
    false
}
