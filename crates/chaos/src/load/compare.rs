//! Comparison of a cache with a LIST in pages, because a million objects are too large for one response.

use crate::cluster::DirectClient;
use kube_informer::SharedInformer;
use serde_json::Value;

/// Checks that a cache equals a LIST, content included, and returns the number of objects.
pub(super) async fn compare_with_list(
    direct: &DirectClient,
    informer: &SharedInformer<Value>,
) -> anyhow::Result<usize> {
    let snapshot = informer.lister().snapshot();
    let mut count = 0;
    let mut query = "?limit=5000".to_owned();
    loop {
        let (_, page, next) = direct.list_page(informer.kind(), &query).await?;
        for (key, expected) in &page {
            let object = snapshot.get(key);
            let content =
                object.and_then(|object| serde_json::from_slice::<Value>(&object.json().ok()?).ok());
            anyhow::ensure!(content.as_ref() == Some(expected), "{key} in the cache differs from the server");
        }
        count += page.len();
        match next {
            Some(token) => query = format!("?limit=5000&continue={token}"),
            None => break,
        }
    }
    anyhow::ensure!(snapshot.len() == count, "the cache has {} objects, the server {count}", snapshot.len());
    Ok(count)
}
