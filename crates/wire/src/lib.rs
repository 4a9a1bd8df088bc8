//! What travels between a Kubernetes API server and its clients: keys, versions, selectors, encoded objects, framing.

mod selector;

pub use selector::FieldSelector;
pub use selector::FieldTerm;
pub use selector::LabelSelector;
pub use selector::Lookup;
pub use selector::MAX_SELECTOR_BYTES;
pub use selector::Operator;
pub use selector::Requirement;
pub use selector::SelectorError;
