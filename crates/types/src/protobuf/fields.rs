//! The fields of a message on the wire.

use super::ProtobufError;

/// The value of one field on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire<'a> {
    /// A number of variable length.
    Varint(u64),
    /// Eight bytes, in the order of a little-endian machine.
    Fixed64(u64),
    /// Four bytes, which no type of Kubernetes has.
    Fixed32,
    /// Text, bytes, or a message.
    Bytes(&'a [u8]),
}

/// An iterator over the fields of a message: number and value. It ends after the first malformed field.
#[derive(Debug, Clone)]
pub struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Wire<'a>), ProtobufError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.take_next() {
            Ok(None) => None,
            Ok(Some(field)) => Some(Ok(field)),
            Err(malformed) => Some(Err(malformed)),
        }
    }
}

impl<'a> Fields<'a> {
    /// The fields of a message.
    pub fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    /// The bytes of the fields that are still to come.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// The next field, if there is one. Nothing follows a malformed field.
    #[inline]
    pub(super) fn take_next(&mut self) -> Result<Option<(u32, Wire<'a>)>, ProtobufError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
            return Err(ProtobufError::Malformed);
        }
        Ok(field)
    }

    /// Whether the next field has this number.
    #[inline]
    pub(super) fn is_next(&self, number: u32) -> bool {
        match self.0.first() {
            None => false,
            // Numbers up to 15 take one byte.
            Some(key) if *key < 0x80 => u32::from(key >> 3) == number,
            Some(_) => Fields(self.0).varint().is_some_and(|key| key >> 3 == u64::from(number)),
        }
    }

    // Every byte of a message goes through here several times.
    #[inline(always)]
    fn field(&mut self) -> Option<(u32, Wire<'a>)> {
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            _ => return None,
        };
        Some((u32::try_from(key >> 3).ok().filter(|number| *number > 0)?, wire))
    }

    #[inline(always)]
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next number of a packed list.
    #[inline(always)]
    pub(super) fn varint(&mut self) -> Option<u64> {
        match self.0.split_first() {
            Some((byte, rest)) if *byte < 0x80 => {
                self.0 = rest;
                Some(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

impl<'a> Wire<'a> {
    /// The value as text.
    #[inline]
    pub fn text(self) -> Result<&'a str, ProtobufError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| ProtobufError::Malformed)
    }

    /// The value as bytes.
    #[inline]
    pub fn bytes(self) -> Result<&'a [u8], ProtobufError> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            _ => Err(ProtobufError::Malformed),
        }
    }

    /// The value as a number.
    #[inline]
    pub fn integer(self) -> Result<i64, ProtobufError> {
        match self {
            Wire::Varint(value) => Ok(value.cast_signed()),
            _ => Err(ProtobufError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_the_next_field_is_known_without_reading_it() {
        // Keys of text: one byte, two bytes, and two bytes where one is enough.
        for (key, number) in [(&[0x0a_u8][..], 1), (&[0x7a], 15), (&[0x82, 0x01], 16), (&[0x8a, 0x00], 1)] {
            let message = [key, &[0]].concat();
            let fields = Fields(&message);
            let is_next: Vec<u32> = (0..40).filter(|number| fields.is_next(*number)).collect();
            assert_eq!(is_next, [number]);
            assert_eq!(fields.clone().next(), Some(Ok((number, Wire::Bytes(&[])))));
        }
        assert!((0..40).all(|number| !Fields(&[]).is_next(number)));
        // A key without an end.
        assert!((0..40).all(|number| !Fields(&[0x8a]).is_next(number)));
    }
}
