//! The errors about series and serials, as facts. [`crate::message::serial`] turns them into text.
//!
//! Texts of users are in ASCII, and are truncated if they are long. Names of tables and columns are quoted for use in a statement.

use flake::serial::{NotASerial, TemplateError, YearRange};

use crate::pg::plain::Obstacle;

/// What is wrong with a series, a serial, or a trigger that numbers rows.
#[derive(Clone, Debug)]
pub enum SerialProblem {
    /// An argument is NULL. The text is a value that would do.
    Null { argument: &'static str, example: &'static str },
    /// A text is not a template.
    Template { text: String, error: TemplateError },
    /// There is no such kind of series. The names of all kinds are in the hint.
    Kind { kind: String, kinds: &'static str },
    /// There is no such time zone.
    Zone { zone: String },
    /// This time zone depends on the configuration of the server.
    LocalZone { zone: String },
    /// The first number is negative or does not fit the template.
    Start { start: i64, max: i64 },
    /// The text is not the name of a table.
    Name { name: String },
    /// The name of the series is too long for a tag. The lengths are in bytes of UTF-8.
    LongName { series: String, bytes: usize, most: usize },
    /// A temporary table cannot be a series whose numbers are those of segments.
    Temporary { series: String },
    /// The owner of the series does not have the privilege to draw numbers of segments. The names are quoted.
    OwnerMayNotDraw { series: String, owner: String, function: String },
    /// The security label of the series is not its tag. `label` is the tag as a string constant.
    NotHolder { series: String, tag: String, label: String },
    /// The role may not set this security label.
    Label { label: String },
    /// Two series have the same tag.
    SharedTag { series: String, other: String },
    /// The relation is not a series.
    NotASeries { relation: String },
    /// The trigger of a series has other arguments than `snowflake_create_series` writes.
    Definition { series: String },
    /// The new template has other periods, but the series has numbers already.
    OtherPeriods { series: String },
    /// This part of the definition cannot change, because the series has issued numbers, or because servers share it.
    Fixed { series: String, part: &'static str, is_dense: bool },
    /// The series has no counters, because its numbers are those of segments.
    Dense { series: String },
    /// A serial of the new template can be equal to one of the old template.
    Ambiguous { series: String, template: String },
    /// The server is in recovery.
    Standby,
    /// The year does not fit the template.
    Year { at: i128, years: YearRange },
    /// The periods are hours, but the argument is a date.
    DateForHours { series: String },
    /// The next number does not fit the template.
    Overflow { series: String, period: String, number: i64, max: i64 },
    /// A text is not a serial of the series.
    NotASerial { text: String, series: String, template: String, error: NotASerial },
    /// A statement writes a row to a series that is not a counter.
    Row { series: String, period: String },
    /// A counter is above the last number that fits the template.
    AboveTemplate { series: String, period: String, last: i64, max: i64 },
    /// A statement lowers a counter.
    Lowered { series: String, period: String, from: i64, to: i64 },
    /// A statement removes counters or changes their periods.
    Removed { series: String },
    /// `snowflake_series_row()` was called by something other than the trigger of a series.
    NotASeriesTrigger,
    /// `snowflake_number_row()` was called by something other than a trigger that numbers rows.
    NotANumberTrigger,
    /// `snowflake_number_keep()` was called by something other than its trigger.
    NotAKeepTrigger,
    /// The relation is of a kind whose rows cannot be numbered.
    NotATable { relation: String },
    /// The table has no such column.
    NoColumn { table: String, column: String, by_trigger: bool },
    /// The column is not of type `text` or `varchar`.
    NotText { column: String },
    /// The column is not of type `date` or `timestamptz`.
    NotADate { column: String },
    /// The table has no trigger any more that numbers this column, because its series was dropped.
    Gone { table: String, column: String, trigger: String },
    /// Triggers number this column with different series.
    SeveralSeries { table: String, column: String },
    /// The owner of a numbered table may not use the series. The names are quoted.
    TableOwner { table: String, owner: String, series: String },
    /// The role that writes a row may not write its number. The names are quoted.
    MayNotWrite { table: String, column: String, role: String },
    /// The series has got a different name while a trigger was created.
    NameChanged { series: String },
    /// The partitioned table of a partition already numbers the column.
    NumberedAbove { partition: String, parent: String },
    /// A partition already numbers its rows.
    Numbered { partition: String, trigger: String },
    /// A statement writes a number that is not the row's own, or removes a number.
    Kept { table: String, column: String, number: String, is_removed: bool, trigger: String },
    /// Writing a counter as the owner of the series could run other code.
    NotPlain { series: String, obstacle: Obstacle },
    /// The table of a series has other columns.
    Columns { series: String },
    /// A role that does not own the series writes a counter that is not the next number.
    Step { series: String, next: i64 },
    /// A trigger of the table has not stored the serial that the row should get.
    NotStored { table: String, serial: String },
    /// A column lacks more numbers than can be listed.
    ManyGaps { column: String, most: usize },
}
