//! `ServiceAccount`: a pod runs as a service account that exists, and its containers get the token of that account.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::index::Index;
use crate::registry::Object;
use crate::storage::{Storage, StorageError};

const DEFAULT: &str = "default";
/// A pod that a kubelet reports, but which comes from a file of its node.
const MIRROR_POD: &str = "kubernetes.io/config.mirror";
/// The volume of a token, and where containers expect it.
pub(super) const VOLUME_PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// A token is replaced long before: kubelets rotate it every hour.
const TOKEN_SECONDS: i32 = 3607;
/// A controller creates the default account of a new namespace, which takes a moment.
const ATTEMPTS: usize = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// Completes a new pod. `volume` is the name of the volume of its token. Returns why the pod is rejected, if it is.
pub(super) async fn admit(
    accounts: &Index,
    storage: &dyn Storage,
    pod: &mut Object,
    volume: &str,
) -> Result<Result<(), String>, StorageError> {
    let sent = pod.str_at("/spec/serviceAccountName").to_owned();
    if pod.metadata().get("annotations").is_some_and(|all| all.get(MIRROR_POD).is_some()) {
        let allowed = sent.is_empty();
        return Ok(allowed.then_some(()).ok_or("a mirror pod may not reference service accounts".to_owned()));
    }
    let name = if sent.is_empty() { DEFAULT } else { &sent };
    let namespace = pod.namespace().unwrap_or_default().to_owned();
    let Some(account) = find(accounts, storage, &namespace, name).await? else {
        return Ok(Err(format!(
            "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
        )));
    };
    let spec = pod.section_mut("spec");
    for field in ["serviceAccountName", "serviceAccount"] {
        spec.insert(field.to_owned(), name.into());
    }
    if mounts_token(spec, &account) {
        mount_token(spec, volume);
    }
    let secrets = account.at("/imagePullSecrets").and_then(Value::as_array).filter(|list| !list.is_empty());
    if let Some(secrets) = secrets
        && spec.get("imagePullSecrets").and_then(Value::as_array).is_none_or(Vec::is_empty)
    {
        spec.insert("imagePullSecrets".to_owned(), secrets.clone().into());
    }
    Ok(Ok(()))
}

async fn find(
    accounts: &Index,
    storage: &dyn Storage,
    namespace: &str,
    name: &str,
) -> Result<Option<Arc<Object>>, StorageError> {
    let attempts = if name == DEFAULT { ATTEMPTS } else { 1 };
    for attempt in 0..attempts {
        if attempt > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        if let Some(account) = accounts.get(storage, Some(namespace), name).await? {
            return Ok(Some(account));
        }
    }
    Ok(None)
}

/// The pod decides, then the account.
fn mounts_token(spec: &Map<String, Value>, account: &Object) -> bool {
    let own = spec.get("automountServiceAccountToken").and_then(Value::as_bool);
    own.or(account.at("/automountServiceAccountToken").and_then(Value::as_bool)).unwrap_or(true)
}

/// Mounts the token in every container that mounts nothing else there.
fn mount_token(spec: &mut Map<String, Value>, volume: &str) {
    let mut needed = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            let mounts = list_of(container, "volumeMounts");
            if !mounts.iter().any(|mount| mount["mountPath"] == MOUNT_PATH) {
                mounts.push(json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH}));
                needed = true;
            }
        }
    }
    if needed {
        list_of(spec, "volumes").push(json!({"name": volume, "projected": {"defaultMode": 0o644, "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ]}}));
    }
}

/// The list under a field. Validation has rejected other values, or will.
fn list_of<'m>(map: &'m mut Map<String, Value>, field: &str) -> &'m mut Vec<Value> {
    let value = map.entry(field).or_insert(Value::Null);
    if !value.is_array() {
        *value = json!([]);
    }
    value.as_array_mut().expect("made a list just above")
}
