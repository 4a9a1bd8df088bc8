//! Runs two operators for one custom resource against the embedded API server: one in Go on controller-runtime, one in
//! Rust on kube-rs' `Controller`. Neither of them is adapted to this server.
//!
//!     operators [CONTROLLER_RUNTIME_PROGRAM]
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

mod check;
mod kube_rs;
mod site;

use kube_embedded_apiserver::ApiServer;
use std::{fs, process::ExitCode};
use tokio::process::{Child, Command};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<ExitCode, Error> {
    let mut results = vec![("kube-rs", on_kube_rs().await)];
    match std::env::args().nth(1) {
        Some(program) => results.push(("controller-runtime", on_controller_runtime(&program).await)),
        None => println!("SKIPPED: controller-runtime, because no program was given"),
    }
    let mut failed = 0;
    for (name, result) in results {
        match result {
            Ok(()) => println!("{name}: all checks passed"),
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
    site::create_crd(&server.client()?).await?;
    Ok(server)
}

async fn on_kube_rs() -> Result<(), Error> {
    let server = server().await?;
    let operator = tokio::spawn(kube_rs::run(server.client()?));
    let result = check::run(&server).await;
    operator.abort();
    result
}

async fn on_controller_runtime(program: &str) -> Result<(), Error> {
    let server = server().await?;
    let directory = tempfile::tempdir()?;
    let kubeconfig = directory.path().join("config");
    fs::write(&kubeconfig, server.kubeconfig())?;
    // It logs every conflict that it retries. Only a failure shows the log.
    let log = directory.path().join("log");
    let output = fs::File::create(&log)?;
    let mut operator = Command::new(program);
    operator.arg(&kubeconfig).stdout(output.try_clone()?).stderr(output).kill_on_drop(true);
    let mut operator: Child = operator.spawn()?;
    let result = tokio::select! {
        result = check::run(&server) => result,
        status = operator.wait() => Err(format!("the operator exited: {}", status?).into()),
    };
    result.map_err(|error| format!("{error}\n{}", fs::read_to_string(&log).unwrap_or_default()).into())
}
