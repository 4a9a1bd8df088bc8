//! Serves an empty cluster until interrupted: `cargo run -p kube-embedded-apiserver --example serve -- 8001`.

use std::io::Write;

use kube_embedded_apiserver::ApiServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |p| p.parse())?;
    let server = ApiServer::builder().port(port).start().await?;
    writeln!(std::io::stdout(), "{}", server.url())?;
    tokio::signal::ctrl_c().await?;
    server.shutdown().await;
    Ok(())
}
