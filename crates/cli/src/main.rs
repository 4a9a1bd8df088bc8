//! `kube-informer`: watch a cluster, serve the embedded one, see the informer pipeline at work.

mod args;
mod cluster;
mod exit;
mod logging;
mod seeding;
mod serve;
mod signals;
mod watch;

use args::{Arguments, Command};
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
    // A read of the terminal that will never return must not hold up the end.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Serve(options) => serve::run(options).await,
        Command::Watch(options) => watch::run(options).await,
        Command::Completions { shell } => {
            let name = Arguments::command().get_name().to_owned();
            clap_complete::generate(shell, &mut Arguments::command(), name, &mut std::io::stdout());
            Ok(())
        }
    }
}
