//! Lists of injected faults, and counts of them.

use std::{fmt, marker::PhantomData};

/// Declares an enum `Fault` with one variant for each injected fault, its name in reports, and its documentation.
///
/// ```
/// harness::faults! {
///     Reset = "reset", "A connection was reset.";
///     Refused = "refused", "A connection was refused.";
/// }
/// assert_eq!(Fault::ALL, [Fault::Reset, Fault::Refused]);
/// assert_eq!(Fault::Reset.name(), "reset");
///
/// let mut counts = harness::FaultCounts::<Fault>::default();
/// counts.add(Fault::Refused, 2);
/// assert_eq!(counts.to_string(), " reset=0 refused=2");
/// ```
#[macro_export]
macro_rules! faults {
    ($($variant:ident = $name:literal, $doc:literal;)*) => {
        /// An injected fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $(#[doc = $doc] $variant,)*
        }

        impl Fault {
            /// All faults, in the order of reports.
            pub const ALL: &'static [Fault] = &[$(Fault::$variant,)*];

            /// The name in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl $crate::FaultList for Fault {
            const ALL: &'static [Self] = Self::ALL;

            fn name(self) -> &'static str {
                self.name()
            }

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

/// An enum that [`faults!`](crate::faults) declares.
pub trait FaultList: Copy + 'static {
    /// All faults, in the order of reports.
    const ALL: &'static [Self];

    /// The name in reports.
    fn name(self) -> &'static str;

    /// The position in [`ALL`](Self::ALL).
    fn index(self) -> usize;
}

/// How often each fault took effect. Shows as ` NAME=COUNT` for each fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultCounts<F> {
    /// In the order of [`FaultList::ALL`].
    counts: Vec<u64>,
    faults: PhantomData<F>,
}

impl<F: FaultList> FaultCounts<F> {
    /// Adds to the count of a fault.
    pub fn add(&mut self, fault: F, times: u64) {
        self.counts[fault.index()] += times;
    }

    /// Adds other counts.
    pub fn add_all(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, more)| *sum += more);
    }

    /// How often a fault took effect.
    pub fn count(&self, fault: F) -> u64 {
        self.counts[fault.index()]
    }

    /// How often any fault took effect.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl<F: FaultList> Default for FaultCounts<F> {
    fn default() -> Self {
        Self { counts: vec![0; F::ALL.len()], faults: PhantomData }
    }
}

impl<F: FaultList> fmt::Display for FaultCounts<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        F::ALL.iter().try_for_each(|&fault| write!(f, " {}={}", fault.name(), self.count(fault)))
    }
}
