//! Requests to etcd, over its JSON gateway.

use crate::cluster::{DirectClient, RequestError};
use serde_json::json;
use std::net::SocketAddr;

/// Compacts the history of etcd up to its newest revision.
pub(crate) async fn compact(url: &str) -> anyhow::Result<()> {
    let address: SocketAddr = url.trim_start_matches("http://").parse()?;
    let etcd = DirectClient::new(address)?;
    let failed = |error: RequestError| anyhow::anyhow!("request to etcd failed: {error}");
    // The response to any range request contains the newest revision.
    let response =
        etcd.request("POST", "/v3/kv/range", Some(&json!({"key": "AA=="}))).await.map_err(failed)?;
    let revision = &response["header"]["revision"];
    let request = json!({"revision": revision, "physical": true});
    etcd.request("POST", "/v3/kv/compaction", Some(&request)).await.map_err(failed)?;
    Ok(())
}
