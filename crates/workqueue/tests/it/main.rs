//! Behaviour of the queue as its users see it. All under paused time; nothing sleeps.
//!
//! `UPSTREAM.md` beside this directory lists which of these tests pins which behaviour of client-go.

mod basics;
mod delay;
mod guard;
mod limiters;
mod measurements;
mod model;
mod panicking_keys;
mod poor_hash;
mod priority;
mod reentrant;
mod shutdown;
mod stress;
mod workers;
