//! Messages of protobuf, written field by field: as much of it as spans need.

// The types of a field on the wire.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;

/// A message, or a part of one. The numbers of its fields are those of OpenTelemetry's `.proto` files.
#[derive(Clone, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// Adds a field of the type `string` or `bytes`.
    pub(super) fn bytes(mut self, field: u64, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.varint(field << 3 | BYTES);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Adds a field that is a message, or one more message of a repeated field.
    pub(super) fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    /// Adds a field of the type `int64` or of an enumeration.
    pub(super) fn number(mut self, field: u64, value: u32) -> Self {
        self.varint(field << 3 | VARINT);
        self.varint(value.into());
        self
    }

    /// Adds a field of the type `fixed64`.
    pub(super) fn fixed_64(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3 | FIXED_64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Adds a field of the type `fixed32`.
    pub(super) fn fixed_32(mut self, field: u64, value: u32) -> Self {
        self.varint(field << 3 | FIXED_32);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Seven bits in each byte, the lowest first; the eighth says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
