//! Defines the settings. A definition consists of the default, the range, and the time at which the setting can be
//! changed.
//!
//! The values of the four identity settings are read earlier, by the module [`crate::config::identity`]. This module
//! still defines these settings, so that `SHOW`, `pg_settings` and `ALTER SYSTEM` recognize them, and so that they can
//! only be set in the server's configuration. The variable of `snowflake_pg.worker_id` is in
//! [`crate::config::guc_hooks`], because the hook that shows the setting reads it.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::time::Duration;

use flake::fleet::{MAX_LEASE, MIN_LEASE};
use flake::{ClockRules, MAX_WINDOW, Nanos, OnRegression, Pace};
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};
use pgrx::pg_sys;

use crate::config::guc_hooks::{
    CALLBACKS, Callbacks, UNSET, WORKER, check_epoch, check_layout, check_registry, show_worker,
};
use crate::config::turn;
use crate::faults::{self, Fault};

pub const WORKER_ID: &CStr = c"snowflake_pg.worker_id";
pub const DATACENTER_ID: &CStr = c"snowflake_pg.datacenter_id";
pub const LAYOUT: &CStr = c"snowflake_pg.layout";
pub const EPOCH: &CStr = c"snowflake_pg.epoch";

pub const REGISTRY: &CStr = c"snowflake_pg.registry";

const WITNESS_DIRECTORY: &CStr = c"snowflake_pg.witness_directory";

/// The default layout, which is the one that Twitter used.
pub const DEFAULT_LAYOUT: &CStr = c"41:10:12";

/// The minimum of `snowflake_pg.max_ahead`, in milliseconds. A throttled session sleeps for at least one millisecond.
/// If `max_ahead` were smaller, the session could not use all IDs that the layout allows.
const MIN_MAX_AHEAD_MS: i32 = 2;
const DEFAULT_MAX_AHEAD_MS: i32 = 100;
/// The maximum of `snowflake_pg.max_ahead`, in milliseconds. The value is limited because users may rely on the time of
/// an ID, even though this time is not exact.
pub const MAX_MAX_AHEAD_MS: i32 = 10_000;

/// How far ahead of the clock IDs and the mark can be in normal operation, in nanoseconds. After a crash, IDs start up
/// to one window ahead of the clock, and can then advance by another `snowflake_pg.max_ahead`.
pub const FARTHEST_AHEAD: Nanos = MAX_WINDOW + MAX_MAX_AHEAD_MS as Nanos * 1_000_000;

/// The default of `snowflake_pg.max_clock_jump`, in seconds.
const DEFAULT_MAX_CLOCK_JUMP_S: i32 = 3_600;
/// The maximum of `snowflake_pg.max_clock_jump`: one year, in seconds. A superuser can accept larger jumps manually.
const MAX_MAX_CLOCK_JUMP_S: i32 = 31_536_000;

/// The range and the default of `snowflake_pg.lease`, in seconds. With the default, a server can continue to issue IDs
/// during an overnight outage of the registry.
const MIN_LEASE_S: i32 = MIN_LEASE.as_secs() as i32;
const DEFAULT_LEASE_S: i32 = 12 * 3_600;
const MAX_LEASE_S: i32 = MAX_LEASE.as_secs() as i32;

/// The default and the maximum of `snowflake_pg.max_clock_skew`, in milliseconds. If the value is 0, no warning is
/// logged.
const DEFAULT_MAX_CLOCK_SKEW_MS: i32 = 1_000;
const MAX_MAX_CLOCK_SKEW_MS: i32 = 3_600_000;

/// The default and the maximum of `snowflake_pg.max_segments`. The registry does not accept reports of more segments
/// than the maximum.
const DEFAULT_MAX_SEGMENTS: i32 = 256;
const MAX_MAX_SEGMENTS: i32 = 10_000;

/// A parameter that users may set by mistake instead of `snowflake_pg.worker_id`, because the name of the extension
/// starts with `snowflake`.
pub const OTHER_WORKER_ID: &CStr = c"snowflake.worker_id";

/// The first sequence number of a new tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum SequenceStart {
    #[name = c"zero"]
    Zero,
    #[name = c"random"]
    Random,
}

/// What the server does after the wall clock has been set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum ClockRegression {
    /// The server continues at the speed of the monotonic clock.
    #[name = c"continue"]
    Continue,
    /// A session waits for the clock if the wait takes no longer than 10 s. Otherwise, it raises an error.
    #[name = c"wait"]
    Wait,
    /// A session raises an error.
    #[name = c"error"]
    Error,
}

static DATACENTER: GucSetting<i32> = GucSetting::<i32>::new(0);
static LAYOUT_TEXT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(DEFAULT_LAYOUT));
static EPOCH_TEXT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static WITNESS_TEXT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"/dev/shm"));
static REGISTRY_TEXT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static LEASE: GucSetting<i32> = GucSetting::<i32>::new(DEFAULT_LEASE_S);
static MAX_CLOCK_SKEW: GucSetting<i32> = GucSetting::<i32>::new(DEFAULT_MAX_CLOCK_SKEW_MS);
static MAX_SEGMENTS: GucSetting<i32> = GucSetting::<i32>::new(DEFAULT_MAX_SEGMENTS);
static MAX_AHEAD: GucSetting<i32> = GucSetting::<i32>::new(DEFAULT_MAX_AHEAD_MS);
static SEQUENCE_START: GucSetting<SequenceStart> = GucSetting::<SequenceStart>::new(SequenceStart::Zero);

static ON_CLOCK_REGRESSION: GucSetting<ClockRegression> = GucSetting::<ClockRegression>::new(ClockRegression::Continue);
static MAX_CLOCK_JUMP: GucSetting<i32> = GucSetting::<i32>::new(DEFAULT_MAX_CLOCK_JUMP_S);

pub fn on_clock_regression() -> ClockRegression {
    ON_CLOCK_REGRESSION.get()
}

/// Returns the directory of the witness, or an empty string if the server runs without a witness.
pub fn witness_directory() -> String {
    WITNESS_TEXT.get().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the connection string of the registry, or an empty string if there is no registry. The string can contain a password.
pub fn registry() -> String {
    REGISTRY_TEXT.get().map(|text| text.to_string_lossy().trim().to_owned()).unwrap_or_default()
}

/// Returns how far ahead of its clock the server wants its grant to extend.
pub fn lease() -> Duration {
    // The value is not negative, because PostgreSQL enforces the setting's range.
    Duration::from_secs(LEASE.get() as u64)
}

/// Returns the clock offset above which the server warns, or `None` if it does not warn.
pub fn max_clock_skew() -> Option<Duration> {
    match MAX_CLOCK_SKEW.get() {
        0 => None,
        // The value is not negative, because PostgreSQL enforces the setting's range.
        skew => Some(Duration::from_millis(skew as u64)),
    }
}

/// Returns how many segments this server can hold at the same time.
pub fn max_segments() -> usize {
    // The value is positive, because PostgreSQL enforces the setting's range.
    MAX_SEGMENTS.get() as usize
}

/// Returns the clock settings in the form that the generator clock expects.
pub fn clock_rules() -> ClockRules {
    ClockRules {
        slack: pace().max_ahead,
        // The value is not negative, because PostgreSQL enforces the setting's range.
        max_jump: faults::any_jump(MAX_CLOCK_JUMP.get() as u64 * 1_000_000_000),
        on_regression: match on_clock_regression() {
            ClockRegression::Continue => OnRegression::Continue,
            ClockRegression::Wait | ClockRegression::Error => OnRegression::Hold,
        },
    }
}

/// Returns the settings that a reload can change, in the form that the generator expects. The values are read directly
/// from PostgreSQL's variables, because `GucSetting::get` would look up a thread-local for each setting.
#[inline]
pub fn pace() -> Pace {
    // SAFETY: the pointer refers to the static, which is written only between statements and only by this process's
    // single thread.
    let max_ahead = unsafe { *MAX_AHEAD.as_ptr() };
    // The value is not negative, because PostgreSQL enforces the setting's range.
    pace_with(max_ahead as u64 * 1_000_000)
}

/// Returns the same settings as [`pace`], but with a different `max_ahead`.
#[inline(always)]
pub fn pace_with(max_ahead: Nanos) -> Pace {
    // SAFETY: the pointer refers to the static, which is written only between statements and only by this process's
    // single thread.
    let start = unsafe { *SEQUENCE_START.as_ptr() };
    let random_start = start == SequenceStart::Random as i32;
    Pace { max_ahead: faults::any_lead(max_ahead), random_start, overdue: false, waited: 0 }
}

/// Defines every setting and reserves the prefix, so that PostgreSQL reports misspelled names. The postmaster calls
/// this function while it preloads libraries.
pub fn define(callbacks: Callbacks) {
    let _ = CALLBACKS.set(callbacks);
    // SAFETY: the hook is guarded and returns a string that remains valid until the next call.
    unsafe {
        GucRegistry::define_int_guc_with_hooks(
            WORKER_ID,
            c"Sets the worker ID of this server.",
            c"The worker ID must be unique among all servers whose IDs are used together. It can range from 0 to the largest \
              number that fits in the worker field of snowflake_pg.layout. A value of -1 means that no worker ID is set and that \
              the server does not issue IDs. If snowflake_pg.registry is set, the registry assigns the worker ID.",
            &WORKER,
            UNSET,
            i32::MAX,
            if faults::on(Fault::WorkerForEverybody) { GucContext::Userset } else { GucContext::Postmaster },
            GucFlags::default(),
            None,
            None,
            Some(show_worker),
        );
    }
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
    // SAFETY: the hooks do not panic and are guarded.
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
            c"Sets the time that a timestamp value of 0 represents.",
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
    // SAFETY: the hook is guarded and does not change the value.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            REGISTRY,
            c"Sets the connection string of the registry.",
            c"The registry assigns a worker ID to each server of a fleet. The value is a libpq connection string or URI, and is the \
              same on every server. If the value is empty, the server uses snowflake_pg.worker_id.",
            &REGISTRY_TEXT,
            GucContext::Sighup,
            GucFlags::SUPERUSER_ONLY,
            Some(check_registry),
            None,
            None,
        );
    }
    GucRegistry::define_int_guc(
        c"snowflake_pg.lease",
        c"Sets how long the server can issue IDs without the registry.",
        c"The server renews its grant 720 times in this time. A longer lease lets the server issue IDs during a longer \
          outage of the registry, but also keeps its worker ID unavailable for longer after the server is gone.",
        &LEASE,
        MIN_LEASE_S,
        MAX_LEASE_S,
        GucContext::Postmaster,
        GucFlags::UNIT_S,
    );
    GucRegistry::define_int_guc(
        c"snowflake_pg.max_clock_skew",
        c"Sets the difference between the clocks of this server and of the registry above which the server logs a warning.",
        c"IDs are unique regardless of what the clocks show, but the order of IDs from different servers depends on \
          their clocks. A value of 0 means that no warning is logged.",
        &MAX_CLOCK_SKEW,
        0,
        MAX_MAX_CLOCK_SKEW_MS,
        GucContext::Sighup,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_int_guc(
        c"snowflake_pg.max_segments",
        c"Sets the number of segments from which this server can issue numbers at the same time.",
        c"If sessions use more segments, the server returns the numbers of a segment that is idle, or of one that belongs to \
          the role with the most segments.",
        &MAX_SEGMENTS,
        1,
        MAX_MAX_SEGMENTS,
        GucContext::Postmaster,
        GucFlags::default(),
    );
    // SAFETY: the hook does not panic and is guarded.
    unsafe {
        GucRegistry::define_int_guc_with_hooks(
            c"snowflake_pg.max_ahead",
            c"Sets how far issued IDs can get ahead of the clock before sessions are throttled.",
            c"",
            &MAX_AHEAD,
            MIN_MAX_AHEAD_MS,
            MAX_MAX_AHEAD_MS,
            GucContext::Sighup,
            GucFlags::UNIT_MS,
            None,
            Some(turn::assign_max_ahead),
            None,
        );
    }
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
