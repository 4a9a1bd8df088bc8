//! Static checks: types, and constants that cannot be right.

mod checker;
mod declarations;
mod literals;
mod unify;

pub(crate) use checker::{Checked, Reference, check};
pub(crate) use literals::check_literals;
