//! Many random writes, watch cuts and compactions on the embedded API server, followed over real sockets by
//! client-go's shared and dynamic informers, kube-rs' watcher, and informers of our own. In the end everybody
//! must have what a LIST shows.
//!
//!     in-step [CLIENT_GO_PROGRAM] [WRITES] [SEED]
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

mod followers;
mod workload;

use followers::Followers;
use kube_embedded_apiserver::ApiServer;
use std::{process::ExitCode, time::Duration};

/// Object keys and their versions.
type Contents = std::collections::BTreeMap<String, String>;
type Error = Box<dyn std::error::Error + Send + Sync>;

/// How long a follower may take to catch up in the end.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<ExitCode, Error> {
    let mut arguments = std::env::args().skip(1);
    let client_go = arguments.next().filter(|program| !program.is_empty());
    let writes = arguments.next().map_or(Ok(10_000), |text| text.parse())?;
    let seed = arguments.next().map_or(Ok(1), |text| text.parse())?;

    let server = ApiServer::start().await?;
    workload::prepare(&server).await?;
    let followers = Followers::start(&server, client_go.as_deref()).await?;
    let done = workload::run(&server, writes, seed).await?;
    println!("{done}");
    let expected = workload::contents(&server).await?;
    println!("{} objects in the end", expected.len());
    let (mut passed, mut failed) = (0, 0);
    for (name, difference) in followers.compare(&expected).await {
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
