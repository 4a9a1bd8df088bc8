//! When to learn anew.

/// Samples that make a dictionary.
const SAMPLES: usize = 256;
/// Bytes of samples that are enough, and never exceeded: some thirty times those of a dictionary.
const SAMPLE_BYTES: usize = 1 << 20;
/// Bytes that all objects together have before a dictionary is worth its price: making one takes several megabytes for
/// a moment, which allocators may keep for long.
const WORTH: u64 = 2 << 20;
/// Objects over which the ratio is looked at.
const WINDOW: u64 = 2000;
/// A ratio this much worse than right after the training calls for a new one.
const DECAY: f64 = 1.5;

/// Collects samples, and watches how well the dictionary made of them does.
pub(super) enum Training {
    Collecting {
        samples: Vec<Vec<u8>>,
        bytes: usize,
    },
    /// How well it did over the first window after the training, and how it does in the present one.
    Watching {
        first: Option<f64>,
        raw: u64,
        packed: u64,
        seen: u64,
    },
}

/// What to do about one object.
pub(super) enum Verdict {
    Carry,
    Train(Vec<Vec<u8>>),
}

impl Default for Training {
    fn default() -> Self {
        Self::Collecting { samples: Vec::new(), bytes: 0 }
    }
}

impl Training {
    /// Takes an object as a sample, if samples are wanted. `held` is how many bytes all objects have, about.
    pub(super) fn offer(&mut self, raw: &[u8], held: u64) -> Verdict {
        let Self::Collecting { samples, bytes } = self else { return Verdict::Carry };
        if held < WORTH {
            return Verdict::Carry;
        }
        if *bytes + raw.len() <= SAMPLE_BYTES {
            *bytes += raw.len();
            samples.push(raw.to_vec());
        }
        let enough = samples.len() >= SAMPLES || *bytes + raw.len() > SAMPLE_BYTES && samples.len() >= 16;
        if !enough {
            return Verdict::Carry;
        }
        let samples = std::mem::take(samples);
        *self = Self::Watching { first: None, raw: 0, packed: 0, seen: 0 };
        Verdict::Train(samples)
    }

    /// Notes how well an object was packed; may begin to collect again.
    pub(super) fn packed(&mut self, raw_len: usize, packed_len: usize) {
        let Self::Watching { first, raw, packed, seen } = self else { return };
        *raw += raw_len as u64;
        *packed += packed_len as u64;
        *seen += 1;
        if *seen < WINDOW {
            return;
        }
        let ratio = *packed as f64 / (*raw).max(1) as f64;
        match *first {
            Some(first) if ratio > first * DECAY => *self = Self::default(),
            _ => {
                *first = Some(first.unwrap_or(ratio).min(ratio));
                (*raw, *packed, *seen) = (0, 0, 0);
            }
        }
    }
}
