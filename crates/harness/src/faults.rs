//! Lists of injected faults.

/// Declares an enum `Fault` with one variant for each injected fault, its name in reports, and its documentation.
///
/// ```
/// harness::faults! {
///     Reset = "reset", "A connection was reset.";
///     Refused = "refused", "A connection was refused.";
/// }
/// assert_eq!(Fault::ALL, [Fault::Reset, Fault::Refused]);
/// assert_eq!(Fault::Reset.name(), "reset");
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
    };
}
