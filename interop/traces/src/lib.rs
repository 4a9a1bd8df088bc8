//! Runs scripts with client-go and with kube-informer, and compares the events that handlers received.
//!
//! A [`Script`] is a list of steps of the server and of the informer. [`run`] runs a scripted server and controls a
//! *driver*, a program with an informer, over its standard input and output ([`protocol`]). One driver has client-go's
//! informer, the other one ours. Their [`Trace`]s must be equal, except for the differences that a script lists.

mod driver;
mod encode;
pub mod protocol;
mod random;
mod runner;
mod script;
mod server;
mod store;
mod trace;

pub use random::random;
pub use runner::RunError;
pub use runner::Side;
pub use runner::run;
pub use script::Difference;
pub use script::Script;
pub use script::ScriptError;
pub use trace::Trace;
pub use trace::compare;
