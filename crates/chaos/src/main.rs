//! Runs what is asked for, with a line for each step and one of totals.
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

use anyhow::Context;
use chaos::{
    HandlerLoad, InformerLoad, ObjectLoad, RateLoad, SocketOptions, Step, many_handlers, many_informers,
    many_objects, many_writes, serve, sockets,
};
use clap::{Args, Parser, Subcommand};
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

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
    /// Very much of something
    #[command(subcommand)]
    Load(Load),
    /// The embedded server that a load is put on; started by `load`
    #[command(hide = true)]
    Server,
}

#[derive(Debug, Args)]
struct SocketArguments {
    /// Begin worlds until so many seconds are over; otherwise one short world of each sort
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// The seed of the first world
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Let only this happen, again and again
    #[arg(long, value_name = "STEP")]
    only: Option<Step>,
    /// Worlds with even seeds are on etcd; needs etcd on the PATH, and a program built with --features etcd
    #[arg(long)]
    etcd: bool,
    /// The program kube-informer; the one beside this program by default
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Load {
    /// One informer with very many handlers
    Handlers {
        /// Handlers
        #[arg(long, default_value_t = 1000)]
        handlers: usize,
        /// Objects
        #[arg(long, default_value_t = 1000)]
        objects: u64,
        /// Writes
        #[arg(long, default_value_t = 10_000)]
        writes: u64,
    },
    /// Very many informers in one process
    Informers {
        /// Informers
        #[arg(long, default_value_t = 200)]
        informers: usize,
        /// Writes
        #[arg(long, default_value_t = 10_000)]
        writes: u64,
        /// The seed of what is written
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Very many objects in one cache
    Objects {
        /// Objects
        #[arg(long, default_value_t = 1_000_000)]
        objects: u64,
    },
    /// Very many writes a second, for long
    Rate {
        /// Writes a second
        #[arg(long, default_value_t = 5000)]
        rate: u64,
        /// For so long
        #[arg(long, default_value_t = 600)]
        seconds: u64,
        /// Objects that are written to
        #[arg(long, default_value_t = 2000)]
        objects: u64,
    },
}

#[tokio::main(flavor = "multi_thread", worker_threads = 4)]
async fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Sockets(arguments) => run_sockets(arguments).await,
        Command::Load(load) => run_load(load).await,
        Command::Server => serve().await,
    }
}

async fn run_sockets(arguments: SocketArguments) -> anyhow::Result<()> {
    let options = SocketOptions {
        program: arguments.program.map_or_else(beside, Ok)?,
        seed: arguments.seed,
        time: arguments.seconds.map(Duration::from_secs),
        only: arguments.only,
        etcd: arguments.etcd,
    };
    let (ledger, worlds) = sockets(&options, &|line| println!("{line}")).await?;
    println!("worlds={worlds} {ledger}");
    let failures = ledger.failures();
    failures.iter().for_each(|failure| println!("FAILED {failure}"));
    let seed = options.seed + worlds - 1;
    anyhow::ensure!(failures.is_empty(), "run the last world alone: chaos sockets --seconds 1 --seed {seed}");
    Ok(())
}

async fn run_load(load: Load) -> anyhow::Result<()> {
    let began = Instant::now();
    let say = |line: &str| println!("{:>4}s {line}", began.elapsed().as_secs());
    let totals = match load {
        Load::Handlers { handlers, objects, writes } => {
            many_handlers(HandlerLoad { handlers, objects, writes }, &say).await
        }
        Load::Informers { informers, writes, seed } => {
            many_informers(InformerLoad { informers, writes, seed }, &say).await
        }
        Load::Objects { objects } => many_objects(ObjectLoad { objects }, &say).await,
        Load::Rate { rate, seconds, objects } => many_writes(RateLoad { rate, seconds, objects }, &say).await,
    };
    println!("{}", totals?);
    Ok(())
}

/// The program `kube-informer` that was built together with this one.
fn beside() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program; give --program")?;
    Ok(own.with_file_name("kube-informer"))
}
