//! Reading saved bytes. Every function is total: `None` if the bytes end early or are invalid.

/// The unread rest of some bytes.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*array)
    }

    /// A number of variable length, seven bits in a byte, the lowest first.
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Bytes behind their length.
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(super) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            push_number(&mut bytes, number);
            let mut reader = Reader::new(&bytes);
            assert_eq!((reader.number(), reader.is_at_end()), (Some(number), true));
            assert_eq!(Reader::new(&bytes[..bytes.len() - 1]).number(), None);
        }
        assert_eq!(Reader::new(&[0xFF; 11]).number(), None, "more than 64 bits");
        assert_eq!(Reader::new(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]).number(), None);
    }
}
