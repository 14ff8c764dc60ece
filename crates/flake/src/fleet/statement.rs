//! The protocol's calls as SQL statements, and the answers in the rows that these statements return.

use core::time::Duration;

use super::{Call, ClaimRequest, Loss, Point, RegistryAnswer, RegistryRefusal, RegistryRequest, Scale, Uuid};

/// A call in the form of one SQL statement for the registry's database. The statement must be run in its own
/// transaction. Its answer is valid only after the transaction has been committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The statement. It returns one row, whose columns are all of type `text`. The meaning of its names does not
    /// depend on the search path.
    pub sql: String,
    /// The values of the parameters, beginning with `$1`. All parameters are of type `text`.
    pub parameters: Vec<Option<String>>,
}

/// The columns of an answer. Each has a name and an expression for its value. Times are in seconds since the Unix
/// epoch, because the settings of the registry's role can change the format of times.
const COLUMNS: [(&str, &str); 14] = [
    ("answer", "answer"),
    ("reason", "reason"),
    ("worker", "worker"),
    ("fleet", "fleet"),
    ("life", "life"),
    ("nonce", "nonce"),
    ("count", "count"),
    ("start", "start"),
    ("bound", "bound"),
    ("until", "EXTRACT(epoch FROM until)"),
    ("now", "EXTRACT(epoch FROM now)"),
    ("seen", "EXTRACT(epoch FROM pg_catalog.jsonb_extract_path_text(other, 'seen')::pg_catalog.timestamptz)"),
    // Earlier versions of the registry do not return this value, and earlier versions of the server do not read it.
    ("leave", "pg_catalog.jsonb_extract_path_text(other, 'leave')"),
    ("other", "other"),
];

/// A parameter of a statement, with the type to which it is cast.
type TypedParameter = (Option<String>, &'static str);

fn integer(value: u32) -> TypedParameter {
    (Some(value.to_string()), "int4")
}

fn bigint(value: i64) -> TypedParameter {
    (Some(value.to_string()), "int8")
}

fn uuid(Uuid(value): Uuid) -> TypedParameter {
    (Some(format!("{value:032x}")), "uuid")
}

fn interval(value: Duration) -> TypedParameter {
    (Some(format!("{} us", value.as_micros())), "interval")
}

impl Call {
    /// Returns the statement that sends this call. `about` is a JSON object with information about the caller. The
    /// registry shows the values of the keys `host`, `port`, `data_directory`, `system_identifier`, `role`,
    /// `server_version`, `extension_version`, `clock_offset_us` and `round_trip_us` in its views.
    pub fn statement(&self, about: &str) -> Statement {
        let fleet = self.fleet.map_or((None, "uuid"), uuid);
        let layout = (Some(self.format.layout.to_string()), "text");
        let about = (Some(about.to_string()), "jsonb");
        let (function, rest) = match self.request {
            RegistryRequest::Hello { .. } => ("hello", Vec::new()),
            RegistryRequest::Claim(ClaimRequest { datacenter, holder, life, nonce, clock, lease }) => {
                let (life, clock) = (bigint(life as i64), bigint(clock.id()));
                ("claim", vec![integer(datacenter), uuid(holder), life, uuid(nonce), clock, interval(lease), about])
            }
            RegistryRequest::Renew(renew) => {
                let numbers = [renew.count as i64, renew.life as i64].map(bigint);
                let points = [renew.start, renew.bound, renew.clock].map(|point| bigint(point.id()));
                let mut all = vec![integer(renew.datacenter), integer(renew.worker), uuid(renew.holder)];
                all.extend(numbers);
                all.extend([renew.nonce, renew.next_nonce].map(uuid));
                all.extend(points);
                all.extend([interval(renew.lease), about]);
                ("renew", all)
            }
        };
        let all = [fleet, layout, bigint(self.format.epoch.unix_ms())].into_iter().chain(rest);
        let (parameters, types): (Vec<_>, Vec<_>) = all.unzip();
        let columns = COLUMNS.map(|(name, value)| format!("({value})::pg_catalog.text AS {name}")).join(", ");
        let arguments: Vec<_> =
            (1..).zip(types).map(|(n, kind)| format!("${n}::pg_catalog.text::pg_catalog.{kind}")).collect();
        let sql = format!("SELECT {columns} FROM snowflake_registry.{function}({})", arguments.join(", "));
        Statement { sql, parameters }
    }

    /// Returns the answer in the row that the [`Statement`] returned, or `None` if this version does not recognize the
    /// answer. `column` returns the value of the column with this name, or `None` if the value is null.
    pub fn answer<'row>(&self, column: impl Fn(&str) -> Option<&'row str>) -> Option<RegistryAnswer> {
        let number = |name| column(name)?.parse::<u64>().ok();
        let point = |name| Point::new(column(name)?.parse().ok()?);
        let uuid = |name| u128::from_str_radix(&column(name)?.replace('-', ""), 16).ok().map(Uuid);
        let scale = Scale::new(self.format);
        let until = || scale.point(column("until").and_then(micros).unwrap_or(i64::MAX));
        Some(match (column("answer")?, column("reason")) {
            ("hello", None) => {
                RegistryAnswer::Hello { fleet: uuid("fleet")?, life: number("life")?, nonce: uuid("nonce")? }
            }
            ("claimed", None) => RegistryAnswer::Claimed {
                worker: column("worker")?.parse().ok()?,
                nonce: uuid("nonce")?,
                count: number("count")?,
                life: number("life")?,
                start: point("start")?,
                bound: point("bound")?,
            },
            ("renewed", None) => RegistryAnswer::Renewed {
                nonce: uuid("nonce")?,
                count: number("count")?,
                life: number("life")?,
                bound: point("bound")?,
                leave: column("leave") == Some("true"),
            },
            ("lost", Some("expired")) => RegistryAnswer::Lost(Loss::Expired),
            ("lost", Some("given away")) => RegistryAnswer::Lost(Loss::GivenAway),
            ("conflict", Some("clone")) => {
                RegistryAnswer::Conflict { seen: scale.point(column("seen").and_then(micros).unwrap_or(0)) }
            }
            ("refused", Some(reason)) => RegistryAnswer::Refused(match reason {
                "foreign fleet" => RegistryRefusal::ForeignFleet,
                "layout" => RegistryRefusal::Layout,
                "life" => RegistryRefusal::Life,
                "quarantine" => RegistryRefusal::Quarantine { until: until() },
                "floor" => RegistryRefusal::Floor { until: until() },
                "clock" => RegistryRefusal::Clock { until: until() },
                "full" => RegistryRefusal::Full,
                "range" => RegistryRefusal::Range,
                "lease" => RegistryRefusal::Lease,
                "implausible" => RegistryRefusal::Implausible,
                _ => return None,
            }),
            _ => return None,
        })
    }
}

/// Converts seconds, which can have a fraction, to microseconds. Infinity becomes the largest number with the same
/// sign. Returns `None` if the string is not a number of seconds, or if the result is out of range.
pub fn micros(seconds: &str) -> Option<i64> {
    let (sign, seconds) = seconds.strip_prefix('-').map_or((1, seconds), |seconds| (-1, seconds));
    if seconds == "Infinity" {
        return Some(sign * i64::MAX);
    }
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let digits = fraction.chars().chain(core::iter::repeat('0')).take(6).collect::<String>();
    let micros = whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(digits.parse::<u32>().ok()?.into())?;
    Some(sign * i64::try_from(micros).ok()?)
}
