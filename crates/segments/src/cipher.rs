//! Encryption of what is on disk.

use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};
use std::{
    io,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Bytes that encryption adds to each body: the tag by which wrong bytes are found.
pub(crate) const OVERHEAD: usize = 16;

/// A random key that exists only here. It authenticates each body together with its number, which is in memory: bytes
/// of another body, or of an earlier body in the same place, are as wrong as flipped bits.
pub(crate) struct Cipher {
    key: LessSafeKey,
    /// The number of the next body. Never reused, because a key must not encrypt two bodies with one number.
    next: AtomicU64,
}

/// The bytes are not those that were written.
#[derive(Debug)]
pub(crate) struct WrongBytes;

impl Cipher {
    /// A cipher with a new key.
    pub(crate) fn new() -> io::Result<Self> {
        let mut key = [0; 32];
        let failed = |_| io::Error::other("no random numbers for an encryption key");
        SystemRandom::new().fill(&mut key).map_err(failed)?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key).map_err(failed)?;
        Ok(Self { key: LessSafeKey::new(key), next: AtomicU64::new(0) })
    }

    /// Numbers for this many bodies; the first one of them.
    pub(crate) fn numbers(&self, bodies: usize) -> u64 {
        self.next.fetch_add(bodies as u64, Relaxed)
    }

    /// Encrypts the first `len` bytes in place, and writes the tag behind them.
    pub(crate) fn seal(&self, number: u64, bytes: &mut [u8], len: usize) -> io::Result<()> {
        let (body, rest) = bytes.split_at_mut(len);
        let tag = self.key.seal_in_place_separate_tag(nonce(number), Aad::empty(), body);
        let tag = tag.map_err(|_| io::Error::other("a body is too large to be encrypted"))?;
        rest[..OVERHEAD].copy_from_slice(tag.as_ref());
        Ok(())
    }

    /// Decrypts bytes with their tag in place. Leaves the content.
    pub(crate) fn open(&self, number: u64, bytes: &mut Vec<u8>) -> Result<(), WrongBytes> {
        let len = match self.key.open_in_place(nonce(number), Aad::empty(), bytes) {
            Ok(content) => content.len(),
            Err(_) => return Err(WrongBytes),
        };
        bytes.truncate(len);
        Ok(())
    }
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bytes_that_were_sealed_are_opened() {
        let cipher = Cipher::new().expect("a key");
        let number = cipher.numbers(2);
        let mut sealed = b"content of a secret".to_vec();
        let len = sealed.len();
        sealed.resize(len + OVERHEAD, 0);
        cipher.seal(number, &mut sealed, len).expect("sealed");
        assert!(!sealed.windows(7).any(|window| window == b"content"));
        let open = |number, mut bytes: Vec<u8>| cipher.open(number, &mut bytes).map(|()| bytes).ok();
        assert_eq!(open(number, sealed.clone()).as_deref(), Some(&b"content of a secret"[..]));
        assert_eq!(open(number + 1, sealed.clone()), None, "bytes of another body");
        for at in 0..sealed.len() {
            let mut wrong = sealed.clone();
            wrong[at] ^= 1;
            assert_eq!(open(number, wrong), None, "byte {at} is wrong");
        }
        assert_eq!(open(number, Vec::new()), None);
        assert_ne!(cipher.numbers(1), number + 1, "a number is never used twice");
    }
}
