//! Runs what is asked for, with a line for each step and one of totals.
#![allow(clippy::print_stdout)]

use anyhow::Context;
use chaos::{SocketOptions, sockets};
use clap::{Args, Parser, Subcommand};
use std::{path::PathBuf, time::Duration};

/// Informers against real processes over real sockets while things break, and under load.
#[derive(Debug, Parser)]
#[command(name = "chaos")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Informers against `kube-informer serve` that is killed, paused and replaced, through a proxy that breaks
    /// connections
    Sockets(SocketArguments),
}

#[derive(Debug, Args)]
struct SocketArguments {
    /// Begin worlds until so many seconds are over; otherwise one short world of each sort
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// The seed of the first world
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Every other world is on etcd; needs etcd on the PATH, and a program built with --features etcd
    #[arg(long)]
    etcd: bool,
    /// The program kube-informer; the one beside this program by default
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 4)]
async fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Sockets(arguments) => run_sockets(arguments).await,
    }
}

async fn run_sockets(arguments: SocketArguments) -> anyhow::Result<()> {
    let options = SocketOptions {
        program: arguments.program.map_or_else(beside, Ok)?,
        seed: arguments.seed,
        time: arguments.seconds.map(Duration::from_secs),
        etcd: arguments.etcd,
    };
    let (ledger, worlds) = sockets(&options, &|line| println!("{line}")).await?;
    println!("worlds={worlds} {ledger}");
    let failures = ledger.failures();
    failures.iter().for_each(|failure| println!("FAILED {failure}"));
    let seed = options.seed + worlds - 1;
    anyhow::ensure!(failures.is_empty(), "run the last world alone: chaos sockets --seed {seed}");
    Ok(())
}

/// The program `kube-informer` that was built together with this one.
fn beside() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program; give --program")?;
    Ok(own.with_file_name("kube-informer"))
}
