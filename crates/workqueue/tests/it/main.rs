//! Behaviour of the queue as its users see it. All under paused time; nothing sleeps.

mod workers;
