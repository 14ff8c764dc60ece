//! Time zones, based on PostgreSQL's own time zone data.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

/// The maximum length of a time zone name (`TZ_STRLEN_MAX`).
const MAX_NAME: usize = 255;

/// The number of microseconds in a day. Offsets from UTC are not longer than a day.
const DAY: i128 = 86_400_000_000;

/// A time zone. PostgreSQL keeps it in memory until the process exits.
#[derive(Clone, Copy)]
pub struct Zone(*mut pg_sys::pg_tz);

impl Zone {
    /// Returns the time zone with this name. PostgreSQL also accepts POSIX specifications, such as `CET-1`.
    pub fn of(name: &[u8]) -> Option<Zone> {
        // A longer string, which could be a gigabyte in size, must not be copied.
        let name = CString::new(Some(name).filter(|name| name.len() <= MAX_NAME)?).ok()?;
        // SAFETY: the name is a C string. The result is null or a time zone that is never freed.
        let zone = unsafe { pg_sys::pg_tzset(name.as_ptr()) };
        (!zone.is_null()).then_some(Zone(zone))
    }

    /// Returns the name of the time zone as it is spelled in the time zone data.
    pub fn name(self) -> String {
        // SAFETY: the name of a time zone is a C string that is never freed.
        unsafe { CStr::from_ptr(pg_sys::pg_get_timezone_name(self.0)) }.to_string_lossy().into_owned()
    }

    /// Returns the earliest instant at which clocks in this time zone can show a local time. The local time is given as
    /// the instant at which clocks show it in UTC. Near a change of the time zone's offset, the result can be too early
    /// by the size of that change. Instants are in microseconds since the Unix epoch.
    pub fn begin(self, in_utc: i128) -> i128 {
        let offset = self.offset(in_utc - DAY).max(self.offset(in_utc + DAY));
        in_utc - i128::from(offset) * 1_000_000
    }

    /// Returns how many seconds clocks in this time zone are ahead of UTC at an instant, which is in microseconds since
    /// the Unix epoch. Returns 0 if the instant is outside the range of PostgreSQL's calendar.
    pub fn offset(self, instant: i128) -> i32 {
        let Ok(seconds) = i64::try_from(instant.div_euclid(1_000_000)) else { return 0 };
        // SAFETY: the pointers are valid. The result is null or points to a variable of this process, which is read
        // immediately.
        unsafe { pg_sys::pg_localtime(&raw const seconds, self.0).as_ref() }.map_or(0, |time| time.tm_gmtoff as i32)
    }
}
