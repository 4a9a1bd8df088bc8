//! A cache, compared with a LIST in pages: a million objects do not fit into one answer that is kept.

use crate::cluster::Direct;
use kube_informer::SharedInformer;
use serde_json::Value;

/// The cache is what a LIST shows, content included; how many objects that are.
pub(super) async fn compare(direct: &Direct, informer: &SharedInformer<Value>) -> anyhow::Result<usize> {
    let snapshot = informer.lister().snapshot();
    let mut count = 0;
    let mut query = "?limit=5000".to_owned();
    loop {
        let (_, page, next) = direct.list_page(informer.kind(), &query).await?;
        for (key, expected) in &page {
            let object = snapshot.get(key);
            let content =
                object.and_then(|object| serde_json::from_slice::<Value>(&object.json().ok()?).ok());
            anyhow::ensure!(content.as_ref() == Some(expected), "{key} is not what the server has");
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
