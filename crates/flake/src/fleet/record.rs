//! The content of the witness.

use crate::{Epoch, IdFormat, Layout, Mark, Node};

use super::{Point, Uuid};

/// The part of the server's protocol state that survives a restart of PostgreSQL, but not a restart of the machine. It
/// is the content of the witness.
///
/// Backups and copies of a data directory must not contain the record, because a server with a record continues without
/// contacting the registry. This is safe only as long as there is only one copy of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The fleet that has granted the worker ID.
    pub fleet: Uuid,
    /// The layout and the epoch of the IDs.
    pub format: IdFormat,
    /// The datacenter ID and the worker ID.
    pub node: Node,
    /// The identity of the server as a holder.
    pub holder: Uuid,
    /// The nonce of the last answer.
    pub nonce: Uuid,
    /// The nonce of the renewal that has not been answered yet, or `None` if there is no such renewal. It is never 0.
    pub pending: Option<Uuid>,
    /// The count from the last answer, at least 1.
    pub count: u64,
    /// The life from the last answer, at least 1.
    pub life: u64,
    /// The lowest ID that the server may issue.
    pub start: Point,
    /// The highest ID that the server may issue.
    pub bound: Point,
    /// The server has not issued an ID at or above this mark with this grant.
    pub used: Mark,
}

/// The size of an encoded record in bytes.
pub const RECORD_SIZE: usize = 160;

/// The position of [`Record::used`] in an encoded record: 8 bytes, little-endian, at a multiple of 8. The checksum does
/// not include these bytes, so that any process can raise the number with one atomic store. Only the registrar writes
/// the other bytes.
pub const USED_OFFSET: usize = RECORD_SIZE - 8;

const CHECKSUM_OFFSET: usize = USED_OFFSET - 8;
const MAGIC: [u8; 4] = *b"sfpg";
const VERSION: u32 = 1;
/// The size of the layout's text form, padded with zeros. The longest text, such as `39:8s:8:8@10ms`, is shorter,
/// because each width has at most two digits.
const LAYOUT_SIZE: usize = 24;

impl Record {
    /// Returns the bytes of the record. All numbers are little-endian.
    pub fn encode(&self) -> [u8; RECORD_SIZE] {
        let mut bytes = [0; RECORD_SIZE];
        let mut layout = [0; LAYOUT_SIZE];
        let text = self.format.layout.to_string();
        layout[..text.len()].copy_from_slice(text.as_bytes());
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&MAGIC);
        put(&VERSION.to_le_bytes());
        put(&layout);
        put(&self.format.epoch.unix_ms().to_le_bytes());
        put(&self.node.datacenter.to_le_bytes());
        put(&self.node.worker.to_le_bytes());
        for Uuid(uuid) in [self.fleet, self.holder, self.nonce, self.pending.unwrap_or(Uuid(0))] {
            put(&uuid.to_le_bytes());
        }
        for number in [self.count, self.life, self.start.id() as u64, self.bound.id() as u64] {
            put(&number.to_le_bytes());
        }
        let sum = checksum(&bytes[..CHECKSUM_OFFSET]);
        bytes[CHECKSUM_OFFSET..USED_OFFSET].copy_from_slice(&sum.to_le_bytes());
        bytes[USED_OFFSET..].copy_from_slice(&self.used.value().to_le_bytes());
        bytes
    }

    /// Decodes a record. Returns `None` if the bytes are not an encoded record of this version. If a record was only
    /// partly written, its checksum is wrong. A server without a record claims a worker ID, which is always safe.
    pub fn decode(bytes: &[u8; RECORD_SIZE]) -> Option<Record> {
        let mut fields = Fields(&bytes[..]);
        if fields.take::<4>()? != MAGIC || u32::from_le_bytes(fields.take()?) != VERSION {
            return None;
        }
        if checksum(&bytes[..CHECKSUM_OFFSET]).to_le_bytes() != bytes[CHECKSUM_OFFSET..USED_OFFSET] {
            return None;
        }
        let layout = parse_layout(&fields.take::<LAYOUT_SIZE>()?)?;
        let epoch = Epoch::from_unix_ms(i64::from_le_bytes(fields.take()?))?;
        let node = Node { datacenter: u32::from_le_bytes(fields.take()?), worker: u32::from_le_bytes(fields.take()?) };
        layout.stamp(node).ok()?;
        let record = Record {
            format: IdFormat { layout, epoch },
            node,
            fleet: fields.uuid()?,
            holder: fields.uuid()?,
            nonce: fields.uuid()?,
            pending: fields.uuid().map(|nonce| (nonce != Uuid(0)).then_some(nonce))?,
            count: fields.number()?,
            life: fields.number()?,
            start: Point::new(fields.number()? as i64)?,
            bound: Point::new(fields.number()? as i64)?,
            used: Mark::stored(u64::from_le_bytes(bytes[USED_OFFSET..].try_into().ok()?))?,
        };
        (record.count > 0 && record.life > 0).then_some(record)
    }
}

/// The bytes that have not been decoded yet.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn uuid(&mut self) -> Option<Uuid> {
        self.take().map(|bytes| Uuid(u128::from_le_bytes(bytes)))
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

/// Returns the layout with this text form, which is padded with zeros. Accepts only the form in which layouts are
/// displayed.
fn parse_layout(bytes: &[u8]) -> Option<Layout> {
    let text = core::str::from_utf8(bytes).ok()?.trim_end_matches('\0');
    let layout = Layout::parse(text).ok()?;
    (layout.to_string() == text).then_some(layout)
}

/// Returns the 64-bit FNV-1a checksum. It detects accidental damage, but not forged files, because a program that can
/// write the file can also write a correct checksum.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
