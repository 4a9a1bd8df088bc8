//! Encryption with a key of the user.
//!
//! AES-256-GCM with a key for each generation (HKDF-SHA256 of the user's key and a random salt of 32 bytes) and a
//! random nonce for each frame and body. A generation has some million of them: two equal nonces have a probability
//! below 2⁻⁵⁰. Counters would have to be durable to be better: after a crash the end of a log is written again.

use crate::disk::Disk;
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf,
};
use std::{fmt, io};

/// How many bytes encryption adds: a nonce before, a tag behind.
pub(crate) const OVERHEAD: usize = NONCE_LEN + TAG_LEN;
const TAG_LEN: usize = 16;

/// A key of 256 random bits, with which everything but the header of a log is encrypted.
///
/// It is not a password: derive a key from one before.
#[derive(Clone)]
pub struct EncryptionKey {
    bytes: [u8; 32],
}

impl EncryptionKey {
    /// A key of these bytes, which must be random.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self { bytes }
    }
}

/// Prints nothing of the key.
impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey(..)")
    }
}

/// The kind of encrypted bytes. Bytes of one kind are not accepted as another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Header = 0,
    Frame = 1,
    Body = 2,
}

/// Encrypts and decrypts one generation of a log.
#[derive(Clone)]
pub(crate) struct Sealing {
    key: LessSafeKey,
}

impl fmt::Debug for Sealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealing(..)")
    }
}

impl Sealing {
    pub(crate) fn new(key: &EncryptionKey, salt: &[u8]) -> Self {
        let derived = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(&key.bytes);
        let derived = derived.expand(&[b"kube-informer cache, format 1"], &AES_256_GCM);
        let derived = derived.expect("the length of one key is a valid length");
        Self { key: LessSafeKey::new(UnboundKey::from(derived)) }
    }

    /// Encrypts `bytes[from..]` in place, with a nonce before and a tag behind. They can be opened only for the same
    /// purpose and with the same context.
    pub(crate) fn seal<D: Disk>(
        &self,
        disk: &D,
        purpose: Purpose,
        context: &[u8],
        bytes: &mut Vec<u8>,
        from: usize,
    ) -> io::Result<()> {
        let mut nonce = [0; NONCE_LEN];
        disk.fill_random(&mut nonce)?;
        let plain = bytes.len();
        bytes.resize(plain + NONCE_LEN, 0);
        bytes.copy_within(from..plain, from + NONCE_LEN);
        bytes[from..from + NONCE_LEN].copy_from_slice(&nonce);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let aad = associated(purpose, context);
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(aad), &mut bytes[from + NONCE_LEN..]);
        bytes.extend_from_slice(tag.map_err(|_| io::Error::other("too large to be encrypted"))?.as_ref());
        Ok(())
    }

    /// Decrypts in place and returns the plain bytes, `None` if they were not sealed like this with this key.
    pub(crate) fn open<'a>(
        &self,
        purpose: Purpose,
        context: &[u8],
        bytes: &'a mut [u8],
    ) -> Option<&'a mut [u8]> {
        let (nonce, sealed) = bytes.split_first_chunk_mut::<NONCE_LEN>()?;
        let aad = Aad::from(associated(purpose, context));
        self.key.open_in_place(Nonce::assume_unique_for_key(*nonce), aad, sealed).ok()
    }
}

fn associated(purpose: Purpose, context: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + context.len());
    bytes.push(purpose as u8);
    bytes.extend_from_slice(context);
    bytes
}
