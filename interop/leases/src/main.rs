//! A leader elector of client-go and ours share one lease, over real sockets. Each takes over from the other after an orderly stop, and
//! after the other was killed.
//!
//!     leases CLIENT_GO_PROGRAM [ROUNDS]
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

mod candidates;

use candidates::{ClientGo, Ours};
use harness::wait_until;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube_embedded_apiserver::ApiServer;
use std::time::Duration;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Limit for a take-over. A lease lasts 3 seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().ok_or("usage: leases CLIENT_GO_PROGRAM [ROUNDS]")?;
    let rounds = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let server = ApiServer::start().await?;
    let mut shared = Shared { server, program, take_overs: 0 };
    for round in 0..rounds {
        shared.round(round).await?;
    }
    println!("{} take-overs passed", shared.take_overs);
    Ok(())
}

struct Shared {
    server: ApiServer,
    program: String,
    take_overs: i32,
}

impl Shared {
    async fn round(&mut self, round: usize) -> Result<(), Error> {
        let name = |who: &str| format!("{who}-{round}");
        let go = ClientGo::start(&self.program, &self.server.url(), &name("go"))?;
        self.led_by(&name("go")).await?;
        let ours = Ours::start(self.server.client()?, &name("ours"))?;
        go.stop().await?;
        self.led_by(&name("ours")).await?;
        let go = ClientGo::start(&self.program, &self.server.url(), &name("go-again"))?;
        ours.stop().await?;
        self.led_by(&name("go-again")).await?;
        let ours = Ours::start(self.server.client()?, &name("ours-again"))?;
        go.kill().await?;
        self.led_by(&name("ours-again")).await?;
        let go = ClientGo::start(&self.program, &self.server.url(), &name("go-last"))?;
        ours.kill().await;
        self.led_by(&name("go-last")).await?;
        go.stop().await
    }

    /// Waits until a candidate holds the lease, and checks that it changed hands once.
    async fn led_by(&mut self, identity: &str) -> Result<(), Error> {
        let api: Api<Lease> = Api::default_namespaced(self.server.client()?);
        let what = format!("{identity} holds the lease");
        let mut transitions = None;
        wait_until::<Error>(TIMEOUT, &what, async || {
            let spec = api.get_opt("shared").await?.and_then(|lease| lease.spec).unwrap_or_default();
            transitions = spec.lease_transitions;
            Ok(spec.holder_identity.as_deref() == Some(identity))
        })
        .await?;
        // The first holder creates the lease, which is no transition.
        if transitions != Some(self.take_overs) {
            return Err(format!("{identity}: {transitions:?} transitions, not {}", self.take_overs).into());
        }
        self.take_overs += 1;
        println!("{what}");
        Ok(())
    }
}
