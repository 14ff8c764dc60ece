//! Creates, alters and lists series, and implements the trigger on a series.
//!
//! A series is a table with one row for each period. The arguments of the table's trigger are its definition, so
//! privileges, schemas, renaming, DROP TABLE, dumps and replication work as for any other table.

use flake::serial::Template;
use pgrx::prelude::*;
use pgrx::spi::{SpiError, SpiHeapTupleData};

use crate::functions::extension;
use crate::functions::series_definition::{Definition, Series, SeriesKind};
use crate::functions::series_rights;
use crate::message::argument::ArgumentProblem;
use crate::message::serial::SerialProblem;
use crate::pg::civil::Zone;
use crate::pg::fired::{Fired, Timing, TriggerEvent, Version};
use crate::pg::function::Called;
use crate::pg::locked::Lock;
use crate::pg::relation::{self, ANSWERED, Name};
use crate::pg::role::As;
use crate::pg::text_arg::{Text, shown};
use crate::pg::text_value::TextValue;
use crate::pg::trigger::{NoSuchColumn, TriggerResult};
use crate::pg::{bound_plan, setting, transaction, versions};

/// The maximum length of a table name in an argument: two names of 63 characters of up to four bytes, each quoted.
const MAX_NAME: usize = 600;

/// The maximum number of characters of a period in a message.
const MAX_SHOWN: usize = 100;

/// The number of series to read at a time. It is limited because the memory for them is not managed by PostgreSQL.
const PAGE: usize = 1_000;

/// Creates a series and returns its table.
#[pg_extern(sql = "CREATE FUNCTION snowflake_create_series(series text, template text, kind text DEFAULT 'gapless', \
           time_zone text DEFAULT NULL, start bigint DEFAULT 1) RETURNS regclass VOLATILE PARALLEL UNSAFE LANGUAGE c \
           AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_create_series(
    called: Called,
    series: Option<Text<'_>>,
    template: Option<Text<'_>>,
    kind: Option<Text<'_>>,
    time_zone: Option<Text<'_>>,
    start: Option<i64>,
) -> pg_sys::Oid {
    let null = |argument, example| -> ! { SerialProblem::Null { argument, example }.raise() };
    let series = series.unwrap_or_else(|| null("series", "'invoice'"));
    let form = template.unwrap_or_else(|| null("template", "'INV-{YYYY}-{n:5}'"));
    let kind = kind.unwrap_or_else(|| null("kind", "'gapless'"));
    let start = start.unwrap_or_else(|| null("start", "1"));
    // The tag is set after the table has its name.
    let kind = SeriesKind::of(kind.0)
        .unwrap_or_else(|| SerialProblem::Kind { kind: kind.shown(), kinds: SeriesKind::NAMES }.raise());
    let mut definition = Definition {
        template: parsed(form),
        form: form.0.to_vec(),
        kind,
        zone: zone(time_zone.map(|zone| zone.0)),
        start,
    };
    check_start(&definition);

    let named = qualified(series);
    let table = named.quoted();
    let name = table.as_bytes();
    let create = [
        b"CREATE TABLE ",
        name,
        // The fill factor leaves room on each page, so that new versions of a counter fit on the page of the previous
        // version.
        b" (period pg_catalog.text COLLATE pg_catalog.\"C\" PRIMARY KEY, last_number pg_catalog.int8 NOT NULL) \
          WITH (fillfactor = 50)",
    ];
    relation::run(create.concat());
    let oid = named.oid().unwrap_or_else(|| {
        // An event trigger has renamed or dropped the table.
        Spi::run(&format!("LOCK TABLE {table}")).expect(ANSWERED);
        unreachable!("PostgreSQL raises the error of a table that does not exist")
    });
    if let SeriesKind::Dense { tag } = &mut definition.kind {
        *tag = relation::identity(oid).expect("the table exists");
        let bytes = relation::utf8(tag).len();
        if bytes > SeriesKind::MAX_TAG {
            SerialProblem::LongName { series: table.clone(), bytes, most: SeriesKind::MAX_TAG }.raise();
        }
        series_rights::give(oid, tag, called.schema()).unwrap_or_else(|problem| problem.raise());
    }
    define(name, &definition);
    let function = format!("{}.snowflake_series_row", extension::schema());
    let truncate = format!(
        "CREATE TRIGGER snowflake_series_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
    );
    relation::run(truncate.into_bytes());
    oid
}

/// Changes the definition of a series. If an argument is NULL, that part of the definition is not changed.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_alter_series(series regclass, template text DEFAULT NULL, time_zone text DEFAULT NULL, \
           start bigint DEFAULT NULL) RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn snowflake_alter_series(
    series: Option<pg_sys::Oid>,
    template: Option<Text<'_>>,
    time_zone: Option<Text<'_>>,
    start: Option<i64>,
) {
    let oid = series.unwrap_or_else(|| ArgumentProblem::Null { argument: "series", names: "series" }.raise());
    // If the relation is not a series, this raises the error before anything is locked.
    Series::open(oid, Lock::Reading);
    relation::check_owner(oid);
    relation::lock(oid, "SHARE ROW EXCLUSIVE")
        .unwrap_or_else(|| ArgumentProblem::NoTable { table: oid.to_u32() }.raise());
    let Series { name, mut definition, .. } = Series::open(oid, Lock::Reading);
    let is_dense = definition.kind != SeriesKind::Gapless;
    let has_issued = || is_dense || has_counters(oid, &name);
    if let Some(form) = template {
        let template = parsed(form);
        // How many numbers the registry skips depends on the width that the number field had when the period's segment
        // was created.
        if is_dense && template.max() < definition.template.max() {
            SerialProblem::Fixed { series: name, part: "width of the number", is_dense }.raise();
        }
        if template.unit() != definition.template.unit() && has_issued() {
            SerialProblem::OtherPeriods { series: name }.raise();
        }
        let max = template.max();
        if max < definition.template.max()
            && let Some((period, last)) = counter_above(oid, &name, max)
        {
            SerialProblem::AboveTemplate { series: name, period: shown(&period), last, max }.raise();
        }
        if !template.distinct(&definition.template) && has_issued() {
            SerialProblem::Ambiguous { series: name, template: form.shown() }.raise();
        }
        (definition.template, definition.form) = (template, form.0.to_vec());
    }
    if let Some(text) = time_zone {
        let zone = zone(Some(text.0));
        // The registry requires all servers to compute the same start of a period.
        if is_dense && zone.name() != definition.zone.name() {
            SerialProblem::Fixed { series: name, part: "time zone", is_dense }.raise();
        }
        definition.zone = zone;
    }
    let former = definition.start;
    definition.start = start.unwrap_or(former);
    check_start(&definition);
    // Otherwise, snowflake_serial_gaps() would assume the wrong first number for earlier periods.
    if definition.start != former && has_issued() {
        SerialProblem::Fixed { series: name, part: "first number", is_dense }.raise();
    }
    Spi::run(&format!("DROP TRIGGER snowflake_series ON {name}")).expect(ANSWERED);
    define(name.as_bytes(), &definition);
}

/// Keeps statements from writing rows that are not counters, and from removing or lowering counters.
#[pg_extern(sql = "CREATE FUNCTION snowflake_series_row() RETURNS trigger VOLATILE PARALLEL UNSAFE LANGUAGE c \
                   AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_series_row(call: Called) -> TriggerResult {
    let not_a_series = || -> ! { SerialProblem::NotASeriesTrigger.raise() };
    let Some(fired) = call.fired() else { not_a_series() };
    let series = || relation::of_relation(fired.table()).map(|name| name.quoted()).unwrap_or_default();
    match (fired.timing(), fired.event()) {
        (Timing::AfterRow, TriggerEvent::Insert | TriggerEvent::Update) => {}
        (Timing::AfterRow, TriggerEvent::Delete) | (Timing::BeforeStatement, TriggerEvent::Truncate) => {
            SerialProblem::Removed { series: series() }.raise()
        }
        _ => not_a_series(),
    }
    let (Ok(period), Ok(last)) = (period(&fired, Version::New), last_number(&fired, Version::New)) else {
        not_a_series()
    };
    if fired.event() == TriggerEvent::Update {
        let (Ok(old), Ok(from)) = (self::period(&fired, Version::Old), last_number(&fired, Version::Old)) else {
            not_a_series()
        };
        if old != period {
            SerialProblem::Removed { series: series() }.raise();
        }
        if let (Some(from), Some(to)) = (from, last)
            && to < from
        {
            let period = shown(period.unwrap_or_default());
            SerialProblem::Lowered { series: series(), period, from, to }.raise();
        }
        if let (Some(from), Some(to)) = (from, last)
            && to != from.saturating_add(1)
        {
            only_owner(fired.table(), series(), from.saturating_add(1));
        }
        let template = fired.arguments().first().and_then(|form| Template::parse(form.to_bytes()).ok());
        if let (Some(template), Some(period), Some(from), Some(to)) = (template, period, from, last) {
            check_fits(&template, from, to, || (series(), shown(period)));
        }
        return fired.unchanged();
    }
    let Some(definition) = Definition::of(&fired.arguments().iter().map(|text| text.to_bytes()).collect::<Vec<_>>())
    else {
        SerialProblem::Definition { series: series() }.raise()
    };
    if definition.kind != SeriesKind::Gapless {
        SerialProblem::Dense { series: series() }.raise();
    }
    if let (Some(period), Some(last)) = (period, last)
        && (last < 0 || definition.template.period_of_key(period).is_none())
    {
        SerialProblem::Row { series: series(), period: shown(period) }.raise();
    }
    if let (Some(period), Some(last)) = (period, last) {
        check_fits(&definition.template, last, last, || (series(), shown(period)));
    }
    if last.is_some_and(|last| last != definition.start) {
        only_owner(fired.table(), series(), definition.start);
    }
    // PostgreSQL itself raises errors for NULL values.
    fired.unchanged()
}

/// Raises an error unless the current user owns the series. Any other role can write only the number that a draw
/// writes, which is the `next` number of a period.
fn only_owner(oid: pg_sys::Oid, series: String, next: i64) {
    if !versions::owns(oid) {
        SerialProblem::Step { series, next }.raise();
    }
}

/// Raises an error if a statement changes a counter from one number to another that does not fit the template. If the
/// new number is the next one, the statement comes from a request for a serial. `about` returns the series and the
/// period.
fn check_fits(template: &Template, from: i64, to: i64, about: impl FnOnce() -> (String, String)) {
    let max = template.max();
    if to <= max {
        return;
    }
    let (series, period) = about();
    match from == max && to == max + 1 {
        true => SerialProblem::Overflow { series, period, number: to, max }.raise(),
        false => SerialProblem::AboveTemplate { series, period, last: to, max }.raise(),
    }
}

/// Returns the series on which the current user has any privilege, for the view `snowflake_series`.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_series() RETURNS TABLE (series regclass, template text, kind text, time_zone text, \
           start bigint) STABLE STRICT PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
#[allow(clippy::type_complexity)]
fn snowflake_series() -> TableIterator<
    'static,
    (
        name!(series, pg_sys::Oid),
        name!(template, TextValue),
        name!(kind, &'static str),
        name!(time_zone, String),
        name!(start, i64),
    ),
> {
    // A database can have any number of series, so they are read in pages while the rows are returned.
    let mut page = Vec::new().into_iter();
    let mut last = Some((TextValue(Vec::new()), pg_sys::InvalidOid, pg_sys::InvalidOid));
    TableIterator::new(std::iter::from_fn(move || {
        loop {
            let Some(row): Option<Listed> = page.next() else {
                page = listed(&last.take()?).into_iter();
                continue;
            };
            last = Some((row.name, row.oid, row.trigger));
            // Each argument ends with a zero byte.
            let parts: Option<Vec<&[u8]>> =
                row.arguments.strip_suffix(&[0]).map(|arguments| arguments.split(|byte| *byte == 0).collect());
            let definition = parts.and_then(|parts| Definition::of(&parts));
            if let Some(Definition { form, kind, zone, start, .. }) = definition {
                return Some((row.oid, TextValue(form), kind.name(), zone.name(), start));
            }
        }
    }))
}

/// A table with a series trigger, and the arguments of the trigger.
struct Listed {
    name: TextValue,
    oid: pg_sys::Oid,
    trigger: pg_sys::Oid,
    arguments: Vec<u8>,
}

/// Returns the next tables that have a series trigger and on which the current user has any privilege. They follow the
/// table with the given name, OID and trigger.
fn listed((name, oid, trigger): &(TextValue, pg_sys::Oid, pg_sys::Oid)) -> Vec<Listed> {
    let query = format!(
        "SELECT c.relname::pg_catalog.text, c.oid, t.oid, t.tgargs
         FROM pg_catalog.pg_trigger AS t
             JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) t.tgfoid
             JOIN pg_catalog.pg_extension AS e ON e.extnamespace OPERATOR(pg_catalog.=) p.pronamespace
             JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid
         WHERE p.proname OPERATOR(pg_catalog.=) 'snowflake_series_row' AND e.extname OPERATOR(pg_catalog.=) 'snowflake_pg'
           AND t.tgnargs OPERATOR(pg_catalog.>) 0 AND pg_catalog.octet_length(t.tgargs) OPERATOR(pg_catalog.<) 1000
           AND c.relkind OPERATOR(pg_catalog.=) 'r' AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
           AND (pg_catalog.pg_has_role(c.relowner, 'USAGE')
                OR pg_catalog.has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE'))
           AND (c.relname, c.oid, t.oid) OPERATOR(pg_catalog.>) ($1::pg_catalog.name, $2, $3)
         ORDER BY c.relname, c.oid, t.oid LIMIT {PAGE}"
    );
    let read = Spi::connect(|client| {
        let rows = client.select(&query, None, &[name.clone().into(), (*oid).into(), (*trigger).into()])?;
        rows.map(|row| Ok((row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))).collect::<Result<Vec<_>, SpiError>>()
    });
    let row = |(name, oid, trigger, arguments)| {
        Some(Listed { name: name?, oid: oid?, trigger: trigger?, arguments: arguments? })
    };
    read.expect(ANSWERED).into_iter().filter_map(row).collect()
}

fn period<'row>(fired: &'row Fired<'_>, version: Version) -> Result<Option<&'row [u8]>, NoSuchColumn> {
    fired.text(version, c"period")
}

fn last_number(fired: &Fired<'_>, version: Version) -> Result<Option<i64>, NoSuchColumn> {
    fired.bigint(version, c"last_number")
}

/// Creates or replaces the trigger whose arguments are the definition.
fn define(table: &[u8], definition: &Definition) {
    let function = format!("{}.snowflake_series_row", extension::schema());
    let parts: [&[u8]; 7] = [
        b"CREATE CONSTRAINT TRIGGER snowflake_series AFTER INSERT OR UPDATE OR DELETE ON ",
        table,
        b" NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION ",
        function.as_bytes(),
        b"(",
        &definition.arguments(),
        b")",
    ];
    relation::run(parts.concat());
}

fn parsed(template: Text<'_>) -> Template {
    Template::parse(template.0)
        .unwrap_or_else(|error| SerialProblem::Template { text: template.shown(), error }.raise())
}

fn check_start(definition: &Definition) {
    let (start, max) = (definition.start, definition.template.max());
    if !(0..=max).contains(&start) {
        SerialProblem::Start { start, max }.raise();
    }
}

/// Returns true if a name can refer to different time zones on different servers, or if it does not exist in all
/// installations of the time zone data.
fn is_local(name: &[u8]) -> bool {
    let names = ["localtime", "posixrules", "Factory"];
    let folders = ["posix/", "right/"];
    names.iter().any(|local| name.eq_ignore_ascii_case(local.as_bytes()))
        || folders
            .iter()
            .any(|folder| name.get(..folder.len()).is_some_and(|start| start.eq_ignore_ascii_case(folder.as_bytes())))
}

/// Returns the time zone with this name, or the session's time zone. POSIX specifications are refused, because
/// PostgreSQL accepts almost any string as one, so a misspelled name would select an unintended time zone.
fn zone(name: Option<&[u8]>) -> Zone {
    let session = setting::configured(c"TimeZone").unwrap_or_default();
    let name = name.unwrap_or(session.as_bytes());
    if is_local(name) {
        SerialProblem::LocalZone { zone: shown(name) }.raise();
    }
    let zone = Zone::of(name);
    let known = |zone: &Zone| {
        let known = Spi::get_one_with_args(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_timezone_names WHERE name OPERATOR(pg_catalog.=) $1)",
            &[TextValue::from(zone.name()).into()],
        );
        known.expect(ANSWERED) == Some(true)
    };
    zone.filter(known).unwrap_or_else(|| SerialProblem::Zone { zone: shown(name) }.raise())
}

/// Returns the name of a new table. If the name is not qualified, the table is in the schema in which CREATE TABLE
/// would create it.
fn qualified(name: Text<'_>) -> Name {
    let refuse = || -> ! { SerialProblem::Name { name: name.shown() }.raise() };
    if name.0.len() > MAX_NAME {
        refuse();
    }
    let parts = Spi::connect(|client| {
        let rows = client.select(
            "SELECT part FROM pg_catalog.unnest(pg_catalog.parse_ident($1)) WITH ORDINALITY AS parts (part, place)
             ORDER BY place",
            None,
            &[TextValue(name.0.to_vec()).into()],
        )?;
        rows.map(|row| row.get::<TextValue>(1)).collect::<Result<Vec<_>, SpiError>>()
    });
    let parts: Vec<Vec<u8>> = parts.expect(ANSWERED).into_iter().flatten().map(|part| part.0).collect();
    match &parts[..] {
        [table] => match current_schema() {
            Some(schema) => Name::new(&schema.0, table),
            None => {
                let table = relation::identifier(&relation::utf8(table));
                Spi::run(&format!("CREATE TABLE {table} ()")).expect(ANSWERED);
                unreachable!("PostgreSQL raises the error of a search path without a schema")
            }
        },
        [schema, table] => Name::new(schema, table),
        _ => refuse(),
    }
}

/// Returns the schema in which CREATE TABLE creates a table whose name is not qualified.
fn current_schema() -> Option<TextValue> {
    Spi::get_one("SELECT pg_catalog.current_schema()::pg_catalog.text").expect(ANSWERED)
}

/// Returns the period and the last number of a counter that is above the given number. The period is truncated, because
/// the owner of the series can insert a row with a text of any length.
fn counter_above(table: pg_sys::Oid, series: &str, max: i64) -> Option<(Vec<u8>, i64)> {
    let _reader = As::reader(table);
    let query = format!(
        "SELECT pg_catalog.\"left\"(period::pg_catalog.text, {MAX_SHOWN}), last_number::pg_catalog.int8 FROM {series}
         WHERE last_number::pg_catalog.int8 OPERATOR(pg_catalog.>) $1 ORDER BY period LIMIT 1"
    );
    let read = |row: SpiHeapTupleData<'_>| Ok((row.get::<TextValue>(1)?, row.get::<i64>(2)?));
    let (period, last) = bound_plan::first(table, query, &[max.into()], ArgumentProblem::name_changed, read)?;
    Some((period?.0, last?))
}

/// Returns true if the series has issued numbers, or if the transaction cannot see whether it has.
fn has_counters(table: pg_sys::Oid, series: &str) -> bool {
    let _reader = As::reader(table);
    let query = format!("SELECT true FROM {series} WHERE $1 LIMIT 1");
    let found = bound_plan::first(table, query, &[true.into()], ArgumentProblem::name_changed, |_| Ok(()));
    transaction::keeps_snapshot() || found.is_some()
}
