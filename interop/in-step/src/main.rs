//! Random writes, cut watches and compactions on the embedded API server, watched over real sockets by client-go's
//! shared and dynamic informers, kube-rs' watcher, and our informers. At the end each of them must equal a LIST.
//!
//!     in-step [CLIENT_GO_PROGRAM] [WRITES] [SEED]
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

mod clients;
mod workload;

use clients::Clients;
use kube_embedded_apiserver::ApiServer;
use std::{process::ExitCode, time::Duration};

/// Object keys and their resource versions.
type Contents = std::collections::BTreeMap<String, String>;
type Error = Box<dyn std::error::Error + Send + Sync>;

/// Limit for a client to catch up at the end.
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<ExitCode, Error> {
    let mut arguments = std::env::args().skip(1);
    let client_go = arguments.next().filter(|program| !program.is_empty());
    let writes = arguments.next().map_or(Ok(10_000), |text| text.parse())?;
    let seed = arguments.next().map_or(Ok(1), |text| text.parse())?;

    let server = ApiServer::start().await?;
    workload::create_namespaces(&server).await?;
    let clients = Clients::start(&server, client_go.as_deref()).await?;
    let totals = workload::run(&server, writes, seed).await?;
    println!("{totals}");
    let expected = workload::contents(&server).await?;
    println!("{} objects at the end", expected.len());
    let (mut passed, mut failed) = (0, 0);
    for (name, difference) in clients.compare(&expected).await {
        match difference {
            None => passed += 1,
            Some(difference) => {
                failed += 1;
                println!("FAIL {name}: {difference}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
