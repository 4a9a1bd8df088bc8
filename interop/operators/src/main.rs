//! Two operators for one custom resource do their work on the embedded API server: one in Go on controller-runtime, one
//! in Rust on kube-rs' `Controller`. Neither knows anything of us; each runs as its authors would run it.
//!
//!     operators [CONTROLLER_RUNTIME_PROGRAM]
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

mod kube_rs;
mod site;
mod work;

use kube_embedded_apiserver::ApiServer;
use std::{fs, process::ExitCode};
use tokio::process::{Child, Command};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<ExitCode, Error> {
    let mut results = vec![("kube-rs", on_kube_rs().await)];
    match std::env::args().nth(1) {
        Some(program) => results.push(("controller-runtime", on_controller_runtime(&program).await)),
        None => println!("controller-runtime does not take part: no program was given"),
    }
    let mut failed = 0;
    for (name, result) in results {
        match result {
            Ok(()) => println!("{name}: the operator did its work"),
            Err(error) => {
                failed += 1;
                println!("FAIL {name}: {error}");
            }
        }
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn server() -> Result<ApiServer, Error> {
    let server = ApiServer::builder().garbage_collection(true).start().await?;
    site::define(&server.client()?).await?;
    Ok(server)
}

async fn on_kube_rs() -> Result<(), Error> {
    let server = server().await?;
    let operator = tokio::spawn(kube_rs::run(server.client()?));
    let worked = work::check(&server).await;
    operator.abort();
    worked
}

async fn on_controller_runtime(program: &str) -> Result<(), Error> {
    let server = server().await?;
    let directory = tempfile::tempdir()?;
    let kubeconfig = directory.path().join("config");
    fs::write(&kubeconfig, server.kubeconfig())?;
    // It logs every conflict it gets over; that is of interest only if it fails.
    let log = directory.path().join("log");
    let output = fs::File::create(&log)?;
    let mut operator = Command::new(program);
    operator.arg(&kubeconfig).stdout(output.try_clone()?).stderr(output).kill_on_drop(true);
    let mut operator: Child = operator.spawn()?;
    let worked = tokio::select! {
        worked = work::check(&server) => worked,
        ended = operator.wait() => Err(format!("the operator ended: {}", ended?).into()),
    };
    worked.map_err(|error| format!("{error}\n{}", fs::read_to_string(&log).unwrap_or_default()).into())
}
