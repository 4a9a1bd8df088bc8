//! Ranges of sizes and of costs.

use std::ops::{Add, Mul};

/// The smallest and the largest size or cost. Sums and products saturate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Range {
    /// Anything.
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    pub(super) const fn fixed(n: u64) -> Self {
        Self { min: n, max: n }
    }

    /// The start of a union: no value yet, or none at all.
    pub(super) const fn none(empty: bool) -> Self {
        Self { min: if empty { 0 } else { u64::MAX }, max: 0 }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// Multiplies by a factor and rounds up.
    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }
}

fn scaled(n: u64, factor: f64) -> u64 {
    // Conversions saturate.
    (n as f64 * factor).ceil() as u64
}

impl Add for Range {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }
}

impl Mul for Range {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }
}
