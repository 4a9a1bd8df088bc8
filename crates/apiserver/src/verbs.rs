//! One file per verb: each takes a resolved request and gives an answer or a `Status`.

pub(crate) mod options;
