//! The Service `default/kubernetes` and its endpoints, through which clients inside a cluster find the API server, and the range of
//! addresses that it is in.
//!
//! kube-apiserver creates them itself, and creates them again when they are deleted.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_core::future::BoxFuture;
use serde_json::{Value, json};

use super::metadata::Observation;
use super::{Controller, Settled};
use crate::managed::Writer;
use crate::registry::{Object, Resource};
use crate::storage::{Stored, Update, guaranteed_update};
use crate::verbs::WriteContext;
use crate::verbs::create::insert_unvalidated;
use crate::verbs::error::VerbError;

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";
/// The first address of the range that services get theirs from.
const CLUSTER_IP: &str = "10.96.0.1";

/// The range that services get their addresses from.
const ADDRESS_RANGE: &str = "10.96.0.0/16";

/// Keeps the objects of one server.
///
/// 1. They exist once the server has started, and again after a delete completes.
/// 2. At the start, the endpoints become the address of this server. Later changes by clients stay.
/// 3. Of several servers on one store, the endpoints have the address of the one that started last.
pub(super) struct KubernetesService {
    context: Arc<WriteContext>,
    objects: Vec<Managed>,
}

/// One object.
struct Managed {
    key: Arc<str>,
    resource: Arc<Resource>,
    object: Object,
    /// Fields that name the address, and are set at the start.
    address_fields: &'static [&'static str],
}

impl KubernetesService {
    pub(super) fn new(context: Arc<WriteContext>, address: SocketAddr) -> Self {
        let snapshot = context.resources.snapshot();
        let managed = |group: &str, plural: &str, object: Value, address_fields| {
            let resource = Arc::clone(snapshot.registry.find(group, "v1", plural).ok()?);
            let key = resource.storage_key(resource.namespaced.then_some(NAMESPACE), NAME).into();
            Some(Managed { key, resource, object: Object::new(object)?, address_fields })
        };
        let objects = [
            managed("networking.k8s.io", "servicecidrs", address_range(), &[][..]),
            managed("", "services", service(address), &[]),
            managed("", "endpoints", endpoints(address), &["subsets"]),
            managed("discovery.k8s.io", "endpointslices", endpoint_slice(address), &["endpoints", "ports"]),
        ];
        Self { context, objects: objects.into_iter().flatten().collect() }
    }

    async fn ensure(&self, managed: &Managed) -> Result<Settled, VerbError> {
        let Some(stored) = self.context.storage.get(&managed.key).await? else {
            let writer = Writer {
                manager: "kube-apiserver".to_owned(),
                subresource: None,
                now: self.context.clock.timestamp(),
            };
            // Validation rejects loopback addresses, which is where this server usually is.
            let stored =
                insert_unvalidated(&self.context, &managed.resource, managed.object.clone(), writer).await?;
            return Ok(stored.map(|stored| stored.revision));
        };
        if managed.address_fields.is_empty() {
            return Ok(None);
        }
        let resource = &managed.resource;
        let updated = guaranteed_update(&*self.context.storage, &managed.key, Some(stored), |stored| {
            let mut object = resource.decode(stored)?;
            managed.address_fields.iter().for_each(|field| object.copy_field(field, &managed.object));
            Ok(Update::Write(resource.encode(&object)?))
        })
        .await;
        match updated {
            Ok(updated) => Ok(Some(updated.stored().revision)),
            Err(error) => Err(VerbError::update(resource, NAME, error)),
        }
    }
}

impl Controller for KubernetesService {
    fn reset(&self, _items: &[Arc<Stored>]) -> Vec<Arc<str>> {
        self.objects.iter().map(|managed| Arc::clone(&managed.key)).collect()
    }

    fn change(&self, change: &Observation<'_>) -> Vec<Arc<str>> {
        let ours = |key: &Arc<str>| self.objects.iter().any(|managed| managed.key == *key);
        if change.is_removal() && ours(change.key()) { vec![Arc::clone(change.key())] } else { Vec::new() }
    }

    fn reconcile<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Settled, VerbError>> {
        Box::pin(async move {
            match self.objects.iter().find(|managed| *managed.key == *key) {
                Some(managed) => self.ensure(managed).await,
                None => Ok(None),
            }
        })
    }
}

fn address_range() -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": NAME},
        "spec": {"cidrs": [ADDRESS_RANGE]},
    })
}

fn service(address: SocketAddr) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": CLUSTER_IP,
            "clusterIPs": [CLUSTER_IP],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": address.port()}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
    })
}

fn endpoints(address: SocketAddr) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{
            "addresses": [{"ip": address.ip().to_string()}],
            "ports": [{"name": "https", "port": address.port(), "protocol": "TCP"}],
        }],
    })
}

fn endpoint_slice(address: SocketAddr) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": NAME},
        },
        "addressType": if address.is_ipv6() { "IPv6" } else { "IPv4" },
        "endpoints": [{"addresses": [address.ip().to_string()], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": address.port(), "protocol": "TCP"}],
    })
}
