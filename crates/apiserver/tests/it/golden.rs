//! Scenarios recorded from a real kube-apiserver, replayed over real sockets.
//!
//! The scenarios are in `tests/golden/`, in the format of the recorder. There is one test per area, with one line per scenario that
//! differs. These tests run in real time: the absence of events on a socket can only be observed by waiting.

pub(crate) mod exchange;
mod matcher;
mod run;
mod stream;
mod value;

use std::path::PathBuf;

use kube_embedded_apiserver::ApiServer;
use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn scenarios() -> Vec<Value> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder()).expect("tests/golden").map(|e| e.expect("entry").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "json"));
    paths.sort();
    paths
        .iter()
        .map(|p| serde_json::from_slice(&std::fs::read(p).expect("readable")).expect("a scenario is JSON"))
        .collect()
}

fn name(scenario: &Value) -> &str {
    scenario["name"].as_str().expect("a scenario has a name")
}

async fn replay(area: &str) {
    let server = ApiServer::start().await.expect("the server starts");
    let chosen = scenarios().into_iter().filter(|s| name(s).split('-').next() == Some(area));
    let mut runs = tokio::task::JoinSet::new();
    for (seed, scenario) in chosen.enumerate() {
        let address = server.address();
        runs.spawn(async move {
            run::run(address, &scenario, seed as u64)
                .await
                .err()
                .map(|e| format!("FAIL {} {e}", name(&scenario)))
        });
    }
    let count = runs.len();
    let failures: Vec<String> = runs.join_all().await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{} of {count} scenarios differ:\n{}", failures.len(), failures.join("\n"));
}

macro_rules! areas {
    ($($test:ident),*) => {
        $(
            #[tokio::test]
            async fn $test() {
                replay(stringify!($test)).await;
            }
        )*

        const AREAS: &[&str] = &[$(stringify!($test)),*];
    };
}

areas!(apply, cr, crd, create, delete, disc, get, kind, list, neg, ns, patch, sub, update, watch);

#[test]
fn every_scenario_belongs_to_an_area() {
    let names: Vec<String> = scenarios().iter().map(|s| name(s).to_owned()).collect();
    for name in &names {
        assert!(AREAS.contains(&name.split('-').next().unwrap_or_default()), "{name} is in no area");
    }
}
