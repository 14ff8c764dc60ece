//! The format of a serial, for example `INV-{YYYY}-{n:5}`.
//!
//! Each field has a fixed number of digits. A serial therefore has only one meaning, and the serials of a period sort
//! in the same order as their numbers.

use core::error::Error;
use core::fmt;

use crate::serial::period::{Civil, Period, Unit};

/// The maximum length of a template in bytes.
pub const MAX_TEMPLATE: usize = 100;

/// The maximum number of digits of the number field. All numbers with this many digits fit into `i64`.
pub const MAX_DIGITS: u32 = 18;

/// The first year of the century for `{YY}`. Two digits cannot distinguish several centuries.
const CENTURY: i32 = 2000;

/// A field of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `{YYYY}`, the year.
    Year,
    /// `{YY}`, the last two digits of a year of the 21st century.
    ShortYear,
    /// `{MM}`, the month.
    Month,
    /// `{DD}`, the day of the month.
    Day,
    /// `{HH}`, the hour.
    Hour,
    /// `{n:width}`, the number.
    Number,
}

impl Field {
    /// The time fields.
    const TIMES: [Field; 5] = [Field::Year, Field::ShortYear, Field::Month, Field::Day, Field::Hour];

    /// Returns the length of the periods that this field can distinguish if all longer fields are known.
    fn unit(self) -> Unit {
        match self {
            Field::Number => Unit::All,
            Field::Year | Field::ShortYear => Unit::Year,
            Field::Month => Unit::Month,
            Field::Day => Unit::Day,
            Field::Hour => Unit::Hour,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::Year => "{YYYY}",
            Field::ShortYear => "{YY}",
            Field::Month => "{MM}",
            Field::Day => "{DD}",
            Field::Hour => "{HH}",
            Field::Number => "{n:width}",
        })
    }
}

/// The reason why a string is not a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// The template is too long.
    Long {
        /// The length of the template in bytes.
        length: usize,
    },
    /// A brace does not belong to a field.
    Brace {
        /// The position of the brace in bytes, counted from 1.
        position: usize,
    },
    /// The number field has no width, or its width is out of range.
    Width,
    /// There is no number field.
    NoNumber,
    /// A field occurs more than once, or there are two year fields.
    Twice {
        /// The field.
        field: Field,
    },
    /// The template contains this field, but not the field for the next longer period.
    Lacks {
        /// The field that is present.
        field: Field,
        /// The field that is missing.
        needs: Field,
    },
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::Long { length } => {
                write!(f, "the template has {length} bytes, but the maximum is {MAX_TEMPLATE}")
            }
            TemplateError::Brace { position } => write!(f, "the brace at byte {position} does not belong to a field"),
            TemplateError::Width => write!(f, "the width of the number must be from 1 to {MAX_DIGITS} digits"),
            TemplateError::NoNumber => write!(f, "the template does not contain {}", Field::Number),
            TemplateError::Twice { field } => {
                write!(
                    f,
                    "the template contains {field}, or a different field for the same unit of time, more than once"
                )
            }
            TemplateError::Lacks { field, needs } => {
                write!(
                    f,
                    "the template contains {field} but not {needs}, so serials of different periods would be identical"
                )
            }
        }
    }
}

impl Error for TemplateError {}

/// The number has more digits than the template allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The largest number that the template allows.
    pub max: i64,
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the template has room for numbers from 0 to {}", self.max)
    }
}

impl Error for Overflow {}

/// The range of years that a template can represent, which depends on whether its year has two or four digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct YearRange {
    /// The first year.
    pub first: i32,
    /// The last year.
    pub last: i32,
}

impl fmt::Display for YearRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the template can represent years from {} to {}", self.first, self.last)
    }
}

impl Error for YearRange {}

/// The reason why a string is not a serial of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotASerial {
    /// The length or the literal characters are different, or there are other characters in place of digits.
    Form,
    /// The string contains a date or an hour that does not exist.
    Time,
}

impl fmt::Display for NotASerial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotASerial::Form => "the text does not match the template",
            NotASerial::Time => "the text contains a time that does not exist",
        })
    }
}

impl Error for NotASerial {}

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Literal(u8),
    Field(Field),
}

/// The format of a serial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
    unit: Unit,
    short_year: bool,
    digits: u32,
}

impl Template {
    /// Parses a template. The shortest time field determines the length of the periods. The template must also contain
    /// all longer time fields. Otherwise, the same serial would be issued again.
    pub fn parse(text: &[u8]) -> Result<Template, TemplateError> {
        if text.len() > MAX_TEMPLATE {
            return Err(TemplateError::Long { length: text.len() });
        }
        let (mut pieces, mut digits, mut at) = (Vec::new(), None, 0);
        while let Some(&byte) = text.get(at) {
            let (piece, length) = match byte {
                b'{' => {
                    let brace = TemplateError::Brace { position: at + 1 };
                    let end = text[at..].iter().position(|byte| *byte == b'}').ok_or(brace)?;
                    let field = field(&text[at + 1..at + end], &mut digits)?.ok_or(brace)?;
                    (Piece::Field(field), end + 1)
                }
                b'}' => return Err(TemplateError::Brace { position: at + 1 }),
                literal => (Piece::Literal(literal), 1),
            };
            pieces.push(piece);
            at += length;
        }
        let template = Template { unit: Unit::All, short_year: false, digits: digits.unwrap_or(0), pieces };
        template.checked()
    }

    fn checked(mut self) -> Result<Template, TemplateError> {
        if self.digits == 0 {
            return Err(TemplateError::NoNumber);
        }
        let has = |unit| self.fields().filter(move |field| *field != Field::Number && field.unit() == unit);
        let needs = [(Unit::Year, Field::Year), (Unit::Month, Field::Month), (Unit::Day, Field::Day)];
        for field in Field::TIMES.into_iter().filter(|field| self.fields().any(|other| other == *field)) {
            if has(field.unit()).count() > 1 {
                return Err(TemplateError::Twice { field });
            }
            let lacking = needs.into_iter().find(|(unit, _)| *unit < field.unit() && has(*unit).next().is_none());
            if let Some((_, needs)) = lacking {
                return Err(TemplateError::Lacks { field, needs });
            }
        }
        let unit = self.fields().map(Field::unit).max().unwrap_or(Unit::All);
        let short_year = self.fields().any(|field| field == Field::ShortYear);
        (self.unit, self.short_year) = (unit, short_year);
        Ok(self)
    }

    fn fields(&self) -> impl Iterator<Item = Field> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Field(field) => Some(*field),
            Piece::Literal(_) => None,
        })
    }

    /// Returns the length of the periods.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Returns the largest number that the template allows.
    pub fn max(&self) -> i64 {
        10i64.pow(self.digits) - 1
    }

    /// Returns the range of years that the template can represent.
    pub fn years(&self) -> YearRange {
        match self.short_year {
            true => YearRange { first: CENTURY, last: CENTURY + 99 },
            false => YearRange { first: 1, last: 9999 },
        }
    }

    /// Returns the period that contains a civil time. If the year is out of range, the error contains the range.
    pub fn period(&self, at: Civil) -> Result<Period, YearRange> {
        let years = self.years();
        let fits = self.unit == Unit::All || (years.first..=years.last).contains(&at.year);
        if fits { Ok(Period::of(self.unit, at)) } else { Err(years) }
    }

    /// Returns the period with this text form, or `None` if this template has no such period.
    pub fn period_of_key(&self, key: &[u8]) -> Option<Period> {
        let period = Period::from_key(self.unit, key)?;
        self.period(period.start()).ok()
    }

    /// Returns the serial for a number in a period of this template. The number must not be negative.
    pub fn format(&self, period: Period, number: i64) -> Result<Vec<u8>, Overflow> {
        if !(0..=self.max()).contains(&number) {
            return Err(Overflow { max: self.max() });
        }
        let mut serial = Vec::with_capacity(MAX_TEMPLATE);
        let start = period.start();
        for piece in &self.pieces {
            let (value, width) = match piece {
                Piece::Literal(byte) => {
                    serial.push(*byte);
                    continue;
                }
                Piece::Field(Field::Year) => (i64::from(start.year), 4),
                Piece::Field(Field::ShortYear) => (i64::from(start.year - CENTURY), 2),
                Piece::Field(Field::Month) => (start.month.into(), 2),
                Piece::Field(Field::Day) => (start.day.into(), 2),
                Piece::Field(Field::Hour) => (start.hour.into(), 2),
                Piece::Field(Field::Number) => (number, self.digits as usize),
            };
            serial.extend(format!("{value:0width$}").bytes());
        }
        Ok(serial)
    }

    /// Parses a serial and returns its period and its number.
    pub fn read(&self, serial: &[u8]) -> Result<(Period, i64), NotASerial> {
        let (mut year, mut month, mut day, mut hour, mut number) = (1, 1, 1, 0, 0);
        let mut rest = serial;
        for piece in &self.pieces {
            let (text, after) = rest.split_at_checked(self.width(piece)).ok_or(NotASerial::Form)?;
            rest = after;
            let field = match piece {
                Piece::Literal(byte) if text == [*byte] => continue,
                Piece::Literal(_) => return Err(NotASerial::Form),
                Piece::Field(field) => field,
            };
            let value = value(text).ok_or(NotASerial::Form)?;
            match field {
                Field::Year => year = value as i32,
                Field::ShortYear => year = CENTURY + value as i32,
                Field::Month => month = value as u8,
                Field::Day => day = value as u8,
                Field::Hour => hour = value as u8,
                Field::Number => number = value,
            }
        }
        if !rest.is_empty() {
            return Err(NotASerial::Form);
        }
        let start = Civil::day(year, month, day).filter(|_| hour < 24).ok_or(NotASerial::Time)?;
        let period = self.period(Civil { hour, ..start }).map_err(|_| NotASerial::Time)?;
        Ok((period, number))
    }

    /// Returns a string that has the length and the literal characters of every serial.
    pub fn sample(&self) -> Vec<u8> {
        self.places().into_iter().map(|place| place.unwrap_or(b'0')).collect()
    }

    /// Returns a regular expression for PostgreSQL that matches every serial. It also matches strings that contain a
    /// nonexistent time.
    pub fn pattern(&self) -> Vec<u8> {
        // A backslash makes a punctuation mark literal. Bytes outside of ASCII are parts of characters.
        let place = |place| match place {
            None => b"[0-9]".to_vec(),
            Some(byte) if u8::is_ascii_punctuation(&byte) => vec![b'\\', byte],
            Some(byte) => vec![byte],
        };
        [b"^".to_vec(), self.places().into_iter().flat_map(place).collect(), b"$".to_vec()].concat()
    }

    /// Returns the fields, each with the positions at which it begins and ends in a serial, in bytes.
    pub fn positions(&self) -> Vec<(Field, usize, usize)> {
        let mut end = 0;
        let position = |piece: &Piece| {
            let from = end;
            end += self.width(piece);
            if let Piece::Field(field) = piece { Some((*field, from, end)) } else { None }
        };
        self.pieces.iter().filter_map(position).collect()
    }

    fn width(&self, piece: &Piece) -> usize {
        match piece {
            Piece::Field(Field::Number) => self.digits as usize,
            Piece::Field(Field::Year) => 4,
            Piece::Field(_) => 2,
            Piece::Literal(_) => 1,
        }
    }

    /// Returns true if no string is a serial of both templates, or if both templates are the same.
    pub fn distinct(&self, other: &Template) -> bool {
        let (ours, others) = (self.places(), other.places());
        let differs = |(our, other): (&Option<u8>, &Option<u8>)| match (our, other) {
            (Some(our), Some(other)) => our != other,
            (Some(literal), None) | (None, Some(literal)) => !literal.is_ascii_digit(),
            (None, None) => false,
        };
        self == other || ours.len() != others.len() || ours.iter().zip(&others).any(differs)
    }

    /// Returns the bytes of a serial, with `None` in place of each digit of a field.
    fn places(&self) -> Vec<Option<u8>> {
        let place = |piece: &Piece| match piece {
            Piece::Literal(byte) => vec![Some(*byte)],
            field @ Piece::Field(_) => vec![None; self.width(field)],
        };
        self.pieces.iter().flat_map(place).collect()
    }
}

/// Returns the field with this text between its braces, or `None` if there is no such field. If it is the number field,
/// sets the number of digits.
fn field(text: &[u8], digits: &mut Option<u32>) -> Result<Option<Field>, TemplateError> {
    let Some(width) = text.strip_prefix(b"n") else {
        let name = |field: &Field| field.to_string().as_bytes()[1..].strip_suffix(b"}") == Some(text);
        return Ok(Field::TIMES.into_iter().find(name));
    };
    let width = width.strip_prefix(b":").filter(|width| width.len() <= 2).and_then(value);
    let width = width.filter(|width| (1..=i64::from(MAX_DIGITS)).contains(width)).ok_or(TemplateError::Width)?;
    match digits.replace(width as u32) {
        None => Ok(Some(Field::Number)),
        Some(_) => Err(TemplateError::Twice { field: Field::Number }),
    }
}

/// Returns the value of a string of digits, or `None` if it is empty or contains other characters. There must be at
/// most [`MAX_DIGITS`] digits.
fn value(digits: &[u8]) -> Option<i64> {
    let fits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    fits.then(|| digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
}
