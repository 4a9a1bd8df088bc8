//! Runs a command and prints a line for each step and one with totals.
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

use anyhow::Context;
use chaos::{
    Attack, AttackOptions, HandlerLoad, InformerLoad, ObjectLoad, RateLoad, ShardOptions, SocketOptions,
    Step, attacks, many_handlers, many_informers, many_objects, many_writes, run_replica, serve,
    serve_attacked, shards, sockets,
};
use clap::{Args, Parser, Subcommand};
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

/// Test informers over real sockets: with faults injected, and under load
#[derive(Debug, Parser)]
#[command(name = "chaos")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run informers against `kube-informer serve`, kill, pause and replace the server, and break connections
    Sockets(SocketArguments),
    /// Run a load test
    #[command(subcommand)]
    Load(Load),
    /// Run hostile clients against the embedded server, with a well-behaved client beside them
    Attacks {
        /// Run smaller attacks, which take less than a minute together
        #[arg(long)]
        quick: bool,
        /// Run only this attack
        #[arg(long, value_name = "ATTACK")]
        only: Option<Attack>,
    },
    /// Run three replicas of a controller that divide its objects, and pause and kill them
    Shards {
        /// Pauses and kills
        #[arg(long, value_name = "NUMBER", default_value_t = 5)]
        pauses: u32,
        /// Seed of the writes and of the victims
        #[arg(long, value_name = "SEED", default_value_t = 1)]
        seed: u64,
    },
    /// Run a replica; started by `shards`
    #[command(hide = true)]
    Replica {
        /// Address of the server
        #[arg(long)]
        address: String,
        /// Name of the replica
        #[arg(long)]
        identity: String,
    },
    /// Run the embedded server for an attack; started by `attacks`
    #[command(hide = true)]
    AttackedServer,
    /// Run the embedded server for a load test; started by `load`
    #[command(hide = true)]
    Server,
}

#[derive(Debug, Args)]
struct SocketArguments {
    /// Start worlds until this many seconds have passed [default: one short world on each storage]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Seed of the first world
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Repeat only this step
    #[arg(long, value_name = "STEP")]
    only: Option<Step>,
    /// Use etcd in worlds with even seeds; needs etcd on the PATH and a program built with --features etcd
    #[arg(long)]
    etcd: bool,
    /// Path of the program kube-informer [default: in the directory of this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Load {
    /// One informer with many handlers
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
    /// Many informers in one process
    Informers {
        /// Informers
        #[arg(long, default_value_t = 200)]
        informers: usize,
        /// Writes
        #[arg(long, default_value_t = 10_000)]
        writes: u64,
        /// Seed of the writes
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Many objects in one cache
    Objects {
        /// Objects
        #[arg(long, default_value_t = 1_000_000)]
        objects: u64,
    },
    /// Many writes per second for a long time
    Rate {
        /// Writes per second
        #[arg(long, default_value_t = 5000)]
        rate: u64,
        /// Duration in seconds
        #[arg(long, default_value_t = 600)]
        seconds: u64,
        /// Objects to write to
        #[arg(long, default_value_t = 2000)]
        objects: u64,
    },
}

#[tokio::main(flavor = "multi_thread", worker_threads = 4)]
async fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Sockets(arguments) => run_sockets(arguments).await,
        Command::Load(load) => run_load(load).await,
        Command::Attacks { quick, only } => run_attacks(AttackOptions { quick, only }).await,
        Command::Shards { pauses, seed } => run_shards(ShardOptions { pauses, seed }).await,
        Command::Replica { address, identity } => run_replica(&address, &identity).await,
        Command::AttackedServer => serve_attacked().await,
        Command::Server => serve().await,
    }
}

async fn run_sockets(arguments: SocketArguments) -> anyhow::Result<()> {
    let options = SocketOptions {
        program: arguments.program.map_or_else(default_program, Ok)?,
        seed: arguments.seed,
        time: arguments.seconds.map(Duration::from_secs),
        only: arguments.only,
        etcd: arguments.etcd,
    };
    let (report, worlds) = sockets(&options, &|line| println!("{line}")).await?;
    println!("worlds={worlds} {report}");
    let failures = report.failures();
    failures.iter().for_each(|failure| println!("FAILED {failure}"));
    let seed = options.seed + worlds - 1;
    anyhow::ensure!(
        failures.is_empty(),
        "checks failed; repeat the last world with `chaos sockets --seconds 1 --seed {seed}`"
    );
    Ok(())
}

async fn run_attacks(options: AttackOptions) -> anyhow::Result<()> {
    let began = Instant::now();
    let failures = attacks(options, &|line| println!("{:>4}s {line}", began.elapsed().as_secs())).await?;
    failures.iter().for_each(|failure| println!("FAILED {failure}"));
    anyhow::ensure!(failures.is_empty(), "an attack was successful; repeat it with `chaos attacks --only`");
    Ok(())
}

async fn run_shards(options: ShardOptions) -> anyhow::Result<()> {
    let began = Instant::now();
    let progress = |line: &str| println!("{:>4}s {line}", began.elapsed().as_secs());
    println!("{}", shards(&options, &progress).await?);
    Ok(())
}

async fn run_load(load: Load) -> anyhow::Result<()> {
    let began = Instant::now();
    let progress = |line: &str| println!("{:>4}s {line}", began.elapsed().as_secs());
    let totals = match load {
        Load::Handlers { handlers, objects, writes } => {
            many_handlers(HandlerLoad { handlers, objects, writes }, &progress).await
        }
        Load::Informers { informers, writes, seed } => {
            many_informers(InformerLoad { informers, writes, seed }, &progress).await
        }
        Load::Objects { objects } => many_objects(ObjectLoad { objects }, &progress).await,
        Load::Rate { rate, seconds, objects } => {
            many_writes(RateLoad { rate, seconds, objects }, &progress).await
        }
    };
    println!("{}", totals?);
    Ok(())
}

/// The program `kube-informer` in the directory of this program.
fn default_program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find the path of this program; give --program")?;
    Ok(own.with_file_name("kube-informer"))
}
