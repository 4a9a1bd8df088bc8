//! The watch cache of one resource: its current state, a window of recent changes, and everybody who watches.

mod error;
mod event;
mod request;

pub use error::ReadError;
pub use event::Bookmark;
pub use event::EventType;
pub use event::Format;
pub use event::WatchEvent;
pub use event::WatchItem;
pub use request::ListAnswer;
pub use request::ListRequest;
pub use request::Resource;
pub use request::RevisionMatch;
pub use request::RevisionOption;
pub use request::Scope;
pub use request::WatchRequest;
