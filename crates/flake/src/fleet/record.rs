//! The content of the witness.

use crate::{Epoch, IdFormat, Layout, Mark, Node};

use super::{Point, Uuid};

/// The part of a server's side that outlives a restart of PostgreSQL, but not a restart of the machine. It is the content of the
/// witness.
///
/// No backup and no copy of a data directory may contain it, because a server with a record continues without asking
/// the registry. This is safe only because there is one copy of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The fleet that has granted the worker ID.
    pub fleet: Uuid,
    /// The layout and the epoch of the IDs.
    pub format: IdFormat,
    /// The datacenter ID and the worker ID.
    pub node: Node,
    /// The holder that the server is.
    pub holder: Uuid,
    /// The nonce of the last answer.
    pub nonce: Uuid,
    /// The nonce of the renewal that has not been answered yet, or `None` if every renewal was answered. It is never 0.
    pub pending: Option<Uuid>,
    /// The count that the last answer contained, from 1.
    pub count: u64,
    /// The life that the last answer contained, from 1.
    pub life: u64,
    /// The lowest ID that the server may issue.
    pub start: Point,
    /// The highest ID that the server may issue.
    pub bound: Point,
    /// No ID at or above this mark was issued with this grant.
    pub used: Mark,
}

/// The size of an encoded record in bytes.
pub const RECORD_SIZE: usize = 160;

/// The position of [`Record::used`] in an encoded record: 8 bytes, little-endian, at a multiple of 8. The checksum does not cover
/// them, so that any process can raise the number with one atomic store, while only the registrar writes the rest.
pub const USED_OFFSET: usize = RECORD_SIZE - 8;

const CHECKSUM_OFFSET: usize = USED_OFFSET - 8;
const MAGIC: [u8; 4] = *b"sfpg";
const VERSION: u32 = 1;
/// More than the longest text of a layout, such as `39:8s:8:8@10ms`: the widths have at most two digits each.
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

    /// Returns the record of these bytes, or `None` if they are not an encoded record of this version. A record that was only partly
    /// written has a wrong checksum. A server without a record claims a worker ID, which is always safe.
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

/// The bytes that are not decoded yet.
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

/// Returns the layout of a text that is padded with zeros. Accepts only the form in which a layout is displayed.
fn parse_layout(bytes: &[u8]) -> Option<Layout> {
    let text = core::str::from_utf8(bytes).ok()?.trim_end_matches('\0');
    let layout = Layout::parse(text).ok()?;
    (layout.to_string() == text).then_some(layout)
}

/// FNV-1a with 64 bits. It detects accidental damage, but not a forged file: a program that can write the file can also
/// write a correct checksum.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
