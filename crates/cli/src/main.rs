//! The program `kube-informer`: watches a cluster, serves the embedded API server, demonstrates the informer pipeline,
//! inspects persisted caches.

#![forbid(unsafe_code)]
// This program prints.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod cache;
mod cluster;
mod demo;
mod exit;
mod logging;
mod seeding;
mod serve;
mod signals;
mod table;
mod terminal;
mod watch;

use args::{Arguments, CacheCommand, Command};
use clap::{CommandFactory, Parser};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    logging::start(&arguments.log);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return exit::report(&anyhow::Error::new(error).context("cannot start the async runtime"));
        }
    };
    let result = runtime.block_on(run(arguments.command));
    // Does not wait for a blocked read of the terminal.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Serve(options) => serve::run(*options).await,
        Command::Watch(options) => watch::run(options).await,
        Command::Demo(options) => demo::run(options).await,
        Command::Cache(CacheCommand::Inspect(options)) => cache::inspect(&options),
        Command::Completions { shell } => {
            let name = Arguments::command().get_name().to_owned();
            clap_complete::generate(shell, &mut Arguments::command(), name, &mut std::io::stdout());
            Ok(())
        }
    }
}
