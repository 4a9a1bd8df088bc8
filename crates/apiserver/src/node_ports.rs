//! The node ports of services. Each port belongs to one service.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

use crate::registry::{Object, Resource};
use crate::status::{FieldError, FieldErrors};
use crate::storage::{Change, Follower, Storage, StorageError, Stored};

/// The ports that services may have.
const RANGE: RangeInclusive<u16> = 30_000..=32_767;
/// The first of them that are left to clients which name a port, as in kube-apiserver.
const NAMED_BY_CLIENTS: u16 = 86;

/// The node ports in use.
///
/// 1. A service that names a port of another service, or one outside the range, is rejected.
/// 2. A service that needs ports and names none gets free ones. The same uid gets the same port, if that is free.
/// 3. Both hold for services that are created at the same time on one server. For updates at the same time they may not.
#[derive(Debug)]
pub(crate) struct NodePorts {
    services: Arc<Resource>,
    /// The storage key of the service with each port. Locked for one operation, never over an await.
    owners: RwLock<HashMap<u16, Arc<str>>>,
    /// Held from the choice of a port until the service is stored.
    turn: Mutex<()>,
}

impl NodePorts {
    pub(crate) fn new(services: Arc<Resource>) -> Arc<Self> {
        Arc::new(Self { services, owners: RwLock::default(), turn: Mutex::default() })
    }

    /// Follows the store from now on.
    pub(crate) async fn start(self: &Arc<Self>, storage: &dyn Storage) -> Result<(), StorageError> {
        let follower: Arc<dyn Follower> = Arc::clone(self) as _;
        storage.follow(&self.services.storage_prefix(), Arc::downgrade(&follower)).await
    }

    /// Waits until no other service is being created. `None` for objects that have no node ports.
    pub(crate) async fn turn(&self, resource: &Resource, object: &Object) -> Option<MutexGuard<'_, ()>> {
        if self.concerns(resource) && needs_ports(object) { Some(self.turn.lock().await) } else { None }
    }

    /// Assigns the ports that a service needs and does not have.
    pub(crate) fn assign(&self, resource: &Resource, service: &mut Object) {
        if !self.concerns(resource) || !needs_ports(service) {
            return;
        }
        let mut free = self.free(service);
        if allocates(service) {
            // Ports with the same number and another protocol share their node port.
            let mut chosen: HashMap<i64, u16> = HashMap::new();
            for port in ports(service) {
                if let (Some(number), Some(named)) = (port["port"].as_i64(), node_port(port)) {
                    chosen.entry(number).or_insert(named);
                }
            }
            let list = service.section_mut("spec").get_mut("ports").and_then(Value::as_array_mut);
            for port in list.into_iter().flatten().filter_map(Value::as_object_mut) {
                let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
                if port.get("nodePort").and_then(Value::as_i64).unwrap_or_default() == 0
                    && let Some(node_port) = chosen.get(&number).copied().or_else(|| free.next())
                {
                    chosen.insert(number, node_port);
                    port.insert("nodePort".to_owned(), node_port.into());
                }
            }
        }
        if checks_health(service)
            && health_check_port(service).is_none()
            && let Some(port) = free.next()
        {
            service.section_mut("spec").insert("healthCheckNodePort".to_owned(), port.into());
        }
    }

    /// Checks the ports of a service that is new, or that replaces `old`, which keeps its own.
    pub(crate) fn check(&self, resource: &Resource, service: &Object, old: Option<&Object>) -> FieldErrors {
        let mut errors = FieldErrors::new();
        if !self.concerns(resource) || !needs_ports(service) {
            return errors;
        }
        let kept: Vec<i64> =
            old.into_iter().flat_map(ports).filter_map(|port| port["nodePort"].as_i64()).collect();
        for (i, port) in ports(service).enumerate() {
            let field = || format!("spec.ports[{i}].nodePort");
            match port["nodePort"].as_i64().filter(|number| *number != 0) {
                Some(number) if kept.contains(&number) => {}
                Some(number) => errors.extend(
                    self.why_not(service, number).map(|why| FieldError::invalid(field(), number, why)),
                ),
                None if allocates(service) => {
                    errors.push(FieldError::invalid(
                        field(),
                        0,
                        "failed to allocate a nodePort: range is full",
                    ));
                }
                None => {}
            }
        }
        errors
    }

    /// Why a service cannot have a port.
    fn why_not(&self, service: &Object, number: i64) -> Option<String> {
        let Some(port) = u16::try_from(number).ok().filter(|port| RANGE.contains(port)) else {
            let (first, last) = (RANGE.start(), RANGE.end());
            return Some(format!(
                "provided port is not in the valid range. The range of valid ports is {first}-{last}"
            ));
        };
        let taken = self.read().get(&port).is_some_and(|owner| **owner != *self.key(service));
        taken.then(|| "provided port is already allocated".to_owned())
    }

    /// The free ports, in the order in which they are given to this service.
    fn free(&self, service: &Object) -> impl Iterator<Item = u16> + use<'_> {
        let first = RANGE.start() + NAMED_BY_CLIENTS;
        let count = RANGE.end() - first + 1;
        let start = hash(service.uid().unwrap_or_default()) % count;
        let others = (0..count).map(move |i| first + (start + i) % count);
        let own: Vec<u16> = ports(service).filter_map(node_port).chain(health_check_port(service)).collect();
        let all = others.chain(*RANGE.start()..first);
        all.filter(move |port| !own.contains(port) && !self.read().contains_key(port))
    }

    fn concerns(&self, resource: &Resource) -> bool {
        (&resource.group, &resource.plural) == (&self.services.group, &self.services.plural)
    }

    fn key(&self, service: &Object) -> String {
        self.services.storage_key(service.namespace(), service.name().unwrap_or_default())
    }

    fn take(&self, owners: &mut HashMap<u16, Arc<str>>, stored: &Stored) {
        // A service that cannot be decoded has no ports.
        let Ok(service) = self.services.decode(stored) else { return };
        for port in ports(&service).filter_map(node_port).chain(health_check_port(&service)) {
            owners.insert(port, Arc::clone(&stored.key));
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<u16, Arc<str>>> {
        self.owners.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<u16, Arc<str>>> {
        self.owners.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for NodePorts {
    fn reset(&self, _revision: u64, items: Vec<Arc<Stored>>) {
        let mut owners = HashMap::new();
        items.iter().for_each(|stored| self.take(&mut owners, stored));
        *self.write() = owners;
    }

    fn change(&self, change: &Arc<Change>) {
        let mut owners = self.write();
        owners.retain(|_, owner| owner != change.key());
        if let Some(stored) = &change.current {
            self.take(&mut owners, stored);
        }
    }

    fn progress(&self, _revision: u64) {}

    fn compacted(&self, _revision: u64) {}

    /// The last known ports stay in use until the reset that follows.
    fn lost(&self, _cause: &str) {}
}

fn ports(service: &Object) -> impl Iterator<Item = &Value> {
    service.at("/spec/ports").and_then(Value::as_array).into_iter().flatten()
}

fn node_port(port: &Value) -> Option<u16> {
    as_port(&port["nodePort"])
}

fn health_check_port(service: &Object) -> Option<u16> {
    service.at("/spec/healthCheckNodePort").and_then(as_port)
}

fn as_port(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|number| u16::try_from(number).ok()).filter(|port| *port != 0)
}

fn needs_ports(service: &Object) -> bool {
    matches!(service.str_at("/spec/type"), "NodePort" | "LoadBalancer")
}

/// Whether the server chooses ports. A load balancer may do without them.
fn allocates(service: &Object) -> bool {
    service.str_at("/spec/type") == "NodePort"
        || service.at("/spec/allocateLoadBalancerNodePorts") != Some(&Value::Bool(false))
}

fn checks_health(service: &Object) -> bool {
    service.str_at("/spec/type") == "LoadBalancer" && service.str_at("/spec/externalTrafficPolicy") == "Local"
}

/// FNV-1a: the same in every process, so that a seed gives the same ports.
fn hash(text: &str) -> u16 {
    let sum =
        text.bytes().fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (sum >> 16) as u16 ^ sum as u16
}
