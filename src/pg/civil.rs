//! Time zones, from PostgreSQL's own time zone data.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

/// The maximum length of the name of a time zone (`TZ_STRLEN_MAX`).
const MAX_NAME: usize = 255;

/// The number of microseconds in a day. No offset from UTC is longer.
const DAY: i128 = 86_400_000_000;

/// A time zone. PostgreSQL keeps it until the process ends.
#[derive(Clone, Copy)]
pub struct Zone(*mut pg_sys::pg_tz);

impl Zone {
    /// Returns the time zone of this name. PostgreSQL also accepts POSIX specifications, such as `CET-1`.
    pub fn of(name: &[u8]) -> Option<Zone> {
        // A longer text, which can be a gigabyte in size, is not copied.
        let name = CString::new(Some(name).filter(|name| name.len() <= MAX_NAME)?).ok()?;
        // SAFETY: the name is a C string. The result is null or a time zone that is never freed.
        let zone = unsafe { pg_sys::pg_tzset(name.as_ptr()) };
        (!zone.is_null()).then_some(Zone(zone))
    }

    /// Returns the name of the time zone as its data spell it.
    pub fn name(self) -> String {
        // SAFETY: the name of a time zone is a C string that is never freed.
        unsafe { CStr::from_ptr(pg_sys::pg_get_timezone_name(self.0)) }.to_string_lossy().into_owned()
    }

    /// Returns the earliest instant at which clocks in this time zone can show a time, which is given as the instant at which clocks show
    /// it in UTC. Where a change of the offset is near, the result can be earlier by the difference. Instants are in microseconds since
    /// the Unix epoch.
    pub fn begin(self, in_utc: i128) -> i128 {
        let offset = self.offset(in_utc - DAY).max(self.offset(in_utc + DAY));
        in_utc - i128::from(offset) * 1_000_000
    }

    /// Returns how many seconds clocks in this time zone are ahead of UTC at an instant, in microseconds since the Unix epoch. For an
    /// instant beyond the calendar of PostgreSQL, the result is 0.
    pub fn offset(self, instant: i128) -> i32 {
        let Ok(seconds) = i64::try_from(instant.div_euclid(1_000_000)) else { return 0 };
        // SAFETY: the pointers are valid. The result is null or the time in a variable of this process, which is read at once.
        unsafe { pg_sys::pg_localtime(&raw const seconds, self.0).as_ref() }.map_or(0, |time| time.tm_gmtoff as i32)
    }
}
