//! Runs scripts through client-go and through kube-informer and compares what handlers were told.
//!
//! A [`Script`] is a list of steps: what happens on the server, and what is asked of the informer. The
//! conductor ([`run`]) plays the server itself and steers a *driver*, a program with an informer in it, over
//! its standard input and output ([`protocol`]). There is one driver with client-go's informer and one with
//! ours; the [`Trace`]s of both must be equal but for the differences that a script lists.

mod conductor;
mod driver;
pub mod protocol;
mod random;
mod script;
mod server;
mod trace;
mod wire;
mod world;

pub use conductor::RunError;
pub use conductor::Side;
pub use conductor::run;
pub use random::random;
pub use script::Difference;
pub use script::Script;
pub use script::ScriptError;
pub use trace::Trace;
pub use trace::compare;
