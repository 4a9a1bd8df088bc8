//! Side-by-side measurements of informers.
//!
//! `compare` starts one server, seeds it once, and runs each contender in its own process; the README of this package
//! describes the measurements. The other commands are the processes that it starts.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this program is for")]

mod args;
mod compare;
mod contender;
mod driver;
mod generator;
mod goals;
mod peers;
mod plot;
mod process;
mod progress;
mod protocol;
mod publish;
mod reconcile;
mod restart;
mod results;
mod saved;
mod scale;
mod table;

use args::{Arguments, Command};
use clap::Parser;

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Compare(options) => compare::run(&options),
        Command::Levels(options) => runtime()?.block_on(driver::levels::run(&options)),
        Command::Reconcile(options) => reconcile::run(&options),
        Command::Publish(options) => publish::run(&options),
        Command::Restart(options) => restart::run(&options),
        Command::Scale(options) => scale::run(&options),
        Command::Driver(options) => runtime()?.block_on(driver::run(options)),
        Command::Contender(options) => runtime()?.block_on(contender::run(options)),
        Command::Saved(options) => runtime()?.block_on(saved::run(options)),
        Command::Generator(options) => runtime()?.block_on(generator::run(options)),
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}
