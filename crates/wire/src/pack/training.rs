//! Decides when to train a dictionary.

/// Number of samples for a dictionary.
const SAMPLES: usize = 256;
/// Maximum size of all samples, about thirty times that of a dictionary. When it is reached, `MIN_SAMPLES`
/// are enough.
const SAMPLE_BYTES: usize = 1 << 20;
/// Fewest samples for a dictionary.
const MIN_SAMPLES: usize = 16;
/// Minimum size of all objects for which a dictionary is trained: training briefly takes several megabytes, which allocators
/// may keep.
const MIN_HELD_BYTES: u64 = 2 << 20;
/// Number of objects over which the ratio is measured.
const WINDOW: u64 = 2000;
/// A new dictionary is trained if the ratio is worse by this factor than in the best window since the last
/// training.
const DECAY: f64 = 1.5;

/// Collects samples for a dictionary, then measures its ratio.
pub(super) enum Training {
    Collecting {
        samples: Vec<Vec<u8>>,
        bytes: usize,
    },
    /// Ratio of the best window so far, and sums of the current window.
    Measuring {
        best: Option<f64>,
        raw: u64,
        packed: u64,
        seen: u64,
    },
}

/// Result of [`Training::offer`].
pub(super) enum Offer {
    /// No training now.
    Nothing,
    Train(Vec<Vec<u8>>),
}

impl Default for Training {
    fn default() -> Self {
        Self::Collecting { samples: Vec::new(), bytes: 0 }
    }
}

impl Training {
    /// There is a dictionary: its ratio is measured.
    pub(super) fn measuring() -> Self {
        Self::Measuring { best: None, raw: 0, packed: 0, seen: 0 }
    }

    /// Whether samples for a new dictionary are being taken.
    pub(super) fn is_collecting(&self) -> bool {
        matches!(self, Self::Collecting { .. })
    }

    /// Bytes of the samples.
    pub(super) fn heap_size(&self) -> usize {
        match self {
            Self::Collecting { samples, bytes } => samples.capacity() * size_of::<Vec<u8>>() + bytes,
            Self::Measuring { .. } => 0,
        }
    }

    /// Takes an object as a sample while collecting. `held` is the approximate size of all objects in bytes.
    pub(super) fn offer(&mut self, raw: &[u8], held: u64) -> Offer {
        let Self::Collecting { samples, bytes } = self else { return Offer::Nothing };
        if held < MIN_HELD_BYTES {
            return Offer::Nothing;
        }
        if *bytes + raw.len() <= SAMPLE_BYTES {
            *bytes += raw.len();
            samples.push(raw.to_vec());
        }
        let enough =
            samples.len() >= SAMPLES || *bytes + raw.len() > SAMPLE_BYTES && samples.len() >= MIN_SAMPLES;
        if !enough {
            return Offer::Nothing;
        }
        let samples = std::mem::take(samples);
        *self = Self::measuring();
        Offer::Train(samples)
    }

    /// Records the ratio of an object; may begin to collect again.
    pub(super) fn record_ratio(&mut self, raw_len: usize, packed_len: usize) {
        let Self::Measuring { best, raw, packed, seen } = self else { return };
        *raw += raw_len as u64;
        *packed += packed_len as u64;
        *seen += 1;
        if *seen < WINDOW {
            return;
        }
        let ratio = *packed as f64 / (*raw).max(1) as f64;
        match *best {
            Some(best) if ratio > best * DECAY => *self = Self::default(),
            _ => {
                *best = Some(best.unwrap_or(ratio).min(ratio));
                (*raw, *packed, *seen) = (0, 0, 0);
            }
        }
    }
}
