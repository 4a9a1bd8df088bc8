//! Integration tests of the informer, one binary.

mod acceptance;
mod bad_input;
mod compaction;
mod deadlines;
mod delivery;
mod dropped_values;
mod durations;
mod edits;
mod factory;
mod handlers;
mod indexes;
mod kinds;
mod never_stuck;
mod no_leaks;
mod partitions;
mod pipeline;
mod relist;
mod resync;
mod secrets;
mod seen_from_outside;
mod stop;
mod supervision;
mod support;
mod transforms;
mod user_code;
mod waiting;
