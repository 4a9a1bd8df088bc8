//! Random writes and faults.

use crate::{Contents, Error};
use harness::NAMESPACES;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kube_embedded_apiserver::{ApiServer, Faults};
use serde_json::json;
use std::fmt;

/// Object names in each namespace.
const NAMES: u32 = 60;

/// Counts of writes and faults.
#[derive(Default)]
pub(crate) struct Totals {
    creates: u64,
    updates: u64,
    deletes: u64,
    cuts: u64,
    compactions: u64,
    forgotten_windows: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} creates, {} updates, {} deletes, {} times all watches cut, {} compactions, {} forgotten windows",
            self.creates, self.updates, self.deletes, self.cuts, self.compactions, self.forgotten_windows
        )
    }
}

pub(crate) async fn create_namespaces(server: &ApiServer) -> Result<(), Error> {
    let namespaces: Api<Namespace> = Api::all(server.client()?);
    for name in NAMESPACES.into_iter().filter(|name| *name != "default") {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        namespaces.create(&PostParams::default(), &namespace).await?;
    }
    Ok(())
}

/// Writes at random until `writes` have succeeded.
pub(crate) async fn run(server: &ApiServer, writes: u64, seed: u64) -> Result<Totals, Error> {
    let (client, faults) = (server.client()?, server.faults());
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut totals = Totals::default();
    while totals.creates + totals.updates + totals.deletes < writes {
        write(&client, &mut rng, &mut totals).await?;
        inject_faults(&faults, &mut rng, &mut totals).await?;
        if rng.u32(0..50) == 0 {
            // Gives clients time to receive events between two bursts.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    Ok(totals)
}

async fn write(client: &Client, rng: &mut fastrand::Rng, totals: &mut Totals) -> Result<(), Error> {
    let namespace = NAMESPACES[rng.usize(..NAMESPACES.len())];
    let name = format!("m{}", rng.u32(0..NAMES));
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let data = json!({"data": {"value": rng.u64(..).to_string()}});
    match (maps.get_opt(&name).await?, rng.u32(0..3)) {
        (None, _) => {
            let mut object = data;
            object["metadata"] = json!({"name": name, "labels": {"parity": (rng.u32(0..2)).to_string()}});
            maps.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
            totals.creates += 1;
        }
        (Some(_), 0) => {
            maps.delete(&name, &DeleteParams::default()).await?;
            totals.deletes += 1;
        }
        (Some(_), _) => {
            maps.patch(&name, &PatchParams::default(), &Patch::Merge(data)).await?;
            totals.updates += 1;
        }
    }
    Ok(())
}

async fn inject_faults(faults: &Faults, rng: &mut fastrand::Rng, totals: &mut Totals) -> Result<(), Error> {
    match rng.u32(0..1000) {
        0..8 => {
            faults.cut_watches(None);
            totals.cuts += 1;
        }
        8..10 => {
            faults.compact().await?;
            totals.compactions += 1;
        }
        10 => {
            faults.compact().await?;
            faults.forget_window(Some("configmaps")).await?;
            totals.compactions += 1;
            totals.forgotten_windows += 1;
        }
        _ => {}
    }
    Ok(())
}

/// The content of a LIST.
pub(crate) async fn contents(server: &ApiServer) -> Result<Contents, Error> {
    let maps: Api<ConfigMap> = Api::all(server.client()?);
    let list = maps.list(&ListParams::default()).await?;
    let entry = |map: &ConfigMap| {
        let key = format!("{}/{}", map.namespace().unwrap_or_default(), map.name_any());
        (key, map.resource_version().unwrap_or_default())
    };
    Ok(list.items.iter().map(entry).collect())
}
