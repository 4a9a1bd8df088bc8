//! What is asked of etcd itself, over its JSON interface.

use crate::cluster::{Direct, Refusal};
use serde_json::json;
use std::net::SocketAddr;

/// Drops what etcd remembers of the past.
pub(crate) async fn compact(url: &str) -> anyhow::Result<()> {
    let address: SocketAddr = url.trim_start_matches("http://").parse()?;
    let etcd = Direct::new(address)?;
    let failed = |error: Refusal| anyhow::anyhow!("etcd does not answer: {error}");
    // Any key will do: the answer tells the newest revision.
    let answer = etcd.ask("POST", "/v3/kv/range", Some(&json!({"key": "AA=="}))).await.map_err(failed)?;
    let revision = &answer["header"]["revision"];
    let request = json!({"revision": revision, "physical": true});
    etcd.ask("POST", "/v3/kv/compaction", Some(&request)).await.map_err(failed)?;
    Ok(())
}
