//! Trains a dictionary on content that is spread over the whole collection.
//!
//! The first dictionary is trained on objects that arrived one after the other. A list is sorted by key, so that these are a
//! few applications of one namespace. When everything is packed again anyway, samples from all over the collection are at
//! hand, and allow a larger dictionary.

use super::{
    Packer, Packing,
    dictionary::Dictionary,
    encoding::{self, Encoding, Tag},
    free_memory,
    training::Training,
};
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// Packed bytes from which on a collection gets another dictionary. Training takes about 12 MB for a moment: a smaller
/// collection would have its peak then.
const MIN_LIVE: usize = 8 << 20;
/// A collection gets another dictionary again when it has grown by this factor.
const GROWTH: usize = 4;
/// Size of all samples.
const SAMPLE_BYTES: usize = 3 << 20;
/// Fewest and most samples.
const SAMPLES: (usize, usize) = (64, 2048);
/// Bytes of the dictionary. A larger one saves 2 % more of a pod, and needs twice the samples.
const SIZE: usize = 64 << 10;
/// Bytes of samples for each byte of the dictionary. With fewer, training yields a dictionary that is worse than a small one.
const SAMPLES_PER_BYTE: usize = 16;
/// One of this many samples is not trained on: it shows whether the new dictionary is better.
const TRIAL: usize = 8;

impl Packer {
    /// Whether [`retrain`](Self::retrain) may find a better dictionary: the collection is many times as large as when the
    /// last one was trained.
    pub fn is_retraining_due(&self) -> bool {
        self.packing == Packing::Packed
            && !self.on_disk
            && is_due(self.live_bytes(), self.retrained_at.load(Relaxed))
            && self.bodies.context().newest().is_some()
    }

    /// Trains a dictionary on a sample of all content, and packs new objects with it if it is better. Takes some tenths of a
    /// second: not for a thread that runs other tasks. To be followed by a [`repack`](Self::repack).
    pub fn retrain(&self) {
        let Some(before) = self.bodies.context().newest() else { return };
        self.retrained_at.store(self.live_bytes().max(1), Relaxed);
        let samples = self.samples(&before);
        let (trials, samples): (Vec<_>, Vec<_>) =
            samples.into_iter().enumerate().partition(|(at, _)| at % TRIAL == 0);
        let [trials, samples]: [Vec<Vec<u8>>; 2] =
            [trials, samples].map(|some| some.into_iter().map(|(_, raw)| raw).collect());
        let better = better_dictionary(&before, &samples, &trials);
        drop((samples, trials));
        free_memory::return_to_system();
        if let Some(bytes) = better {
            self.replace(&before, bytes);
        }
    }

    /// Unpacks a sample of the content that has this dictionary. Secrets have none.
    fn samples(&self, dictionary: &Arc<Dictionary>) -> Vec<Vec<u8>> {
        let stats = self.stats();
        let mean = usize::try_from(stats.raw_bytes / stats.objects.max(1)).unwrap_or(usize::MAX).max(1);
        let count = (SAMPLE_BYTES / mean).clamp(SAMPLES.0, SAMPLES.1);
        let (mut samples, mut bytes) = (Vec::new(), 0);
        self.bodies.sample(count, |tag, packed| {
            let (tag, mut raw) = (Tag::from_bits(tag), Vec::new());
            if tag.encoding == Encoding::Dictionary(dictionary.id)
                && bytes + tag.raw_len as usize <= SAMPLE_BYTES
                && let Ok(Some(())) = encoding::unpack(tag, packed, self.bodies.context(), &mut raw)
            {
                bytes += raw.len();
                samples.push(raw);
            }
        });
        samples
    }

    /// Uses a dictionary in place of another one, unless that was replaced meanwhile.
    fn replace(&self, before: &Dictionary, bytes: Vec<u8>) {
        let mut state = self.lock();
        if state.trained.as_ref().is_none_or(|newest| newest.dictionary.id != before.id) {
            return;
        }
        let dictionary = Dictionary::saved(self.bodies.context().next_id(), bytes);
        if self.install(&mut state, dictionary).is_some() {
            state.training = Training::measuring();
        }
    }
}

/// Whether a collection of `live` packed bytes, and of `before` when a dictionary was last trained on it, gets another one.
fn is_due(live: usize, before: usize) -> bool {
    live >= MIN_LIVE && live / GROWTH >= before
}

/// A dictionary that packs the trials better than `before` does.
fn better_dictionary(before: &Dictionary, samples: &[Vec<u8>], trials: &[Vec<u8>]) -> Option<Vec<u8>> {
    let enough = samples.iter().map(Vec::len).sum::<usize>() / SAMPLES_PER_BYTE;
    let size = if enough >= SIZE { SIZE } else { before.len() };
    let candidate = Dictionary::train(before.id, samples, size)?;
    let packed = |dictionary: &Dictionary| {
        let mut compressor = dictionary.compressor(super::LEVEL)?;
        trials
            .iter()
            .map(|raw| compressor.compress(raw).ok().map(|packed| packed.len()))
            .sum::<Option<usize>>()
    };
    let (old, new) = (packed(before)?, packed(&candidate)?);
    // A few percent less are not worth packing everything with another dictionary.
    (new < old - old / 32).then(|| candidate.bytes().to_vec())
}

#[cfg(test)]
mod tests;
