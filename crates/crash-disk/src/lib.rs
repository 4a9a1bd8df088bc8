//! A disk in memory for tests of persisted caches: it fails on request, and shows its files as they are after a crash
//! at any operation.

mod crash;
mod failing;
mod recording;

pub use crash::after_kill;
pub use crash::after_power_loss;
pub use failing::Failing;
pub use recording::Note;
pub use recording::Operation;
pub use recording::RecordingDisk;
pub use recording::RecordingFile;
