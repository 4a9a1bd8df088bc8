//! The cluster IPs and node ports of Services: each belongs to one Service.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use crate::registry::{Object, Resource};
use crate::status::{FieldError, FieldErrors};
use crate::storage::{Change, Follower, Storage, StorageError, Stored};

/// The ports that services may have.
const RANGE: RangeInclusive<u16> = 30_000..=32_767;
/// The first of them that are left to clients which name a port, as in kube-apiserver.
const NAMED_BY_CLIENTS: u16 = 86;

/// The addresses that the server assigns. 10.96.0.1 is the Service `kubernetes`.
const ADDRESSES: RangeInclusive<u32> =
    Ipv4Addr::new(10, 96, 0, 2).to_bits()..=Ipv4Addr::new(10, 96, 255, 254).to_bits();

/// The cluster IPs and node ports in use.
///
/// 1. A service that names an address or a port of another service, or a port outside the range, is rejected.
/// 2. A service that needs an address or ports and names none gets free ones. The same uid gets the same ones, if they are
///    free.
/// 3. Both hold for services that are written at the same time on one server. Two servers on one store may assign the same address or
///    port if each writes before it is notified of the other's write.
#[derive(Debug)]
pub(crate) struct ServiceAddresses {
    services: Arc<Resource>,
    /// Locked for one operation, never over an await.
    owners: RwLock<Owners>,
    /// Held from the choice of an address until the service is stored.
    turn: Mutex<()>,
}

/// The storage key of the service with each address and each port.
#[derive(Debug, Default)]
struct Owners {
    addresses: HashMap<String, Arc<str>>,
    ports: HashMap<u16, Arc<str>>,
}

impl Owners {
    fn take(&mut self, key: &Arc<str>, service: &Object) {
        for address in addresses(service) {
            self.addresses.insert(address.to_owned(), Arc::clone(key));
        }
        for port in all_ports(service) {
            self.ports.insert(port, Arc::clone(key));
        }
    }

    fn release(&mut self, key: &Arc<str>, service: &Object) {
        for address in addresses(service) {
            if self.addresses.get(address).is_some_and(|owner| owner == key) {
                self.addresses.remove(address);
            }
        }
        for port in all_ports(service) {
            if self.ports.get(&port).is_some_and(|owner| owner == key) {
                self.ports.remove(&port);
            }
        }
    }
}

impl ServiceAddresses {
    pub(crate) fn new(services: Arc<Resource>) -> Arc<Self> {
        Arc::new(Self { services, owners: RwLock::default(), turn: Mutex::default() })
    }

    /// Follows the store from now on.
    pub(crate) async fn start(self: &Arc<Self>, storage: &dyn Storage) -> Result<(), StorageError> {
        let follower: Arc<dyn Follower> = Arc::clone(self) as _;
        storage.follow(&self.services.storage_prefix(), Arc::downgrade(&follower)).await
    }

    /// Waits until no other service is being written. `None` for other objects.
    pub(crate) async fn turn(&self, resource: &Resource) -> Option<MutexGuard<'_, ()>> {
        if self.concerns(resource) { Some(self.turn.lock().await) } else { None }
    }

    /// Assigns the address and the ports that a service needs and does not have.
    pub(crate) fn assign(&self, resource: &Resource, service: &mut Object) {
        if !self.concerns(resource) {
            return;
        }
        if needs_address(service) {
            self.assign_address(service);
        }
        if needs_ports(service) {
            self.assign_ports(service);
        }
    }

    fn assign_address(&self, service: &mut Object) {
        let uid = service.uid().unwrap_or_default().to_owned();
        let spec = service.section_mut("spec");
        let is_given = |address: &&str| !address.is_empty();
        let own = spec.get("clusterIP").and_then(Value::as_str).filter(is_given);
        let first =
            spec.get("clusterIPs").and_then(|all| all.get(0)).and_then(Value::as_str).filter(is_given);
        let given = own.or(first).map(str::to_owned);
        let Some(address) = given.or_else(|| self.free_address(&uid)) else { return };
        if spec.get("clusterIPs").is_none_or(Value::is_null) {
            spec.insert("clusterIPs".to_owned(), json!([address]));
        }
        spec.insert("clusterIP".to_owned(), address.into());
    }

    fn free_address(&self, uid: &str) -> Option<String> {
        let (start, end) = (*ADDRESSES.start(), *ADDRESSES.end());
        let from = start + u32::from(hash(uid)) % (end - start + 1);
        let owners = self.read();
        let mut all = (from..=end).chain(start..from).map(|bits| Ipv4Addr::from_bits(bits).to_string());
        all.find(|address| !owners.addresses.contains_key(address))
    }

    fn assign_ports(&self, service: &mut Object) {
        let mut free = self.free_ports(service);
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

    /// Checks address and ports of a service that is new, or that replaces `old`, which keeps its own.
    pub(crate) fn check(&self, resource: &Resource, service: &Object, old: Option<&Object>) -> FieldErrors {
        let mut errors = FieldErrors::new();
        if !self.concerns(resource) {
            return errors;
        }
        if needs_address(service) {
            errors.extend(self.check_address(service, old));
        }
        if needs_ports(service) {
            errors.extend(self.check_ports(service, old));
        }
        errors
    }

    fn check_address(&self, service: &Object, old: Option<&Object>) -> Option<FieldError> {
        let given = service.str_at("/spec/clusterIP");
        let all = service.at("/spec/clusterIPs").cloned().unwrap_or_else(|| json!([given]));
        if given.is_empty() {
            let why = "failed to allocate a serviceIP: range is full";
            return Some(FieldError::invalid("spec.clusterIPs", all, why));
        }
        if old.is_some_and(|old| old.str_at("/spec/clusterIP") == given) {
            return None;
        }
        let owners = self.read();
        let owner = owners.addresses.get(given).filter(|owner| ***owner != *self.key(service));
        owner.map(|_| {
            let why = format!("failed to allocate IP {given}: provided IP is already allocated");
            FieldError::invalid("spec.clusterIPs", all, why)
        })
    }

    fn check_ports(&self, service: &Object, old: Option<&Object>) -> FieldErrors {
        let mut errors = FieldErrors::new();
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
        let taken = self.read().ports.get(&port).is_some_and(|owner| **owner != *self.key(service));
        taken.then(|| "provided port is already allocated".to_owned())
    }

    /// The free ports, in the order in which they are given to this service.
    fn free_ports(&self, service: &Object) -> impl Iterator<Item = u16> + use<'_> {
        let first = RANGE.start() + NAMED_BY_CLIENTS;
        let count = RANGE.end() - first + 1;
        let start = hash(service.uid().unwrap_or_default()) % count;
        let others = (0..count).map(move |i| first + (start + i) % count);
        let own: Vec<u16> = all_ports(service).collect();
        let all = others.chain(*RANGE.start()..first);
        all.filter(move |port| !own.contains(port) && !self.read().ports.contains_key(port))
    }

    fn concerns(&self, resource: &Resource) -> bool {
        (&resource.group, &resource.plural) == (&self.services.group, &self.services.plural)
    }

    fn key(&self, service: &Object) -> String {
        self.services.storage_key(service.namespace(), service.name().unwrap_or_default())
    }

    fn read(&self) -> RwLockReadGuard<'_, Owners> {
        self.owners.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Owners> {
        self.owners.write().unwrap_or_else(PoisonError::into_inner)
    }
}

// A service that cannot be decoded has no addresses.
impl Follower for ServiceAddresses {
    fn reset(&self, _revision: u64, items: Vec<Arc<Stored>>) {
        let mut owners = Owners::default();
        for stored in items {
            if let Ok(service) = self.services.decode(&stored) {
                owners.take(&stored.key, &service);
            }
        }
        *self.write() = owners;
    }

    fn change(&self, change: &Arc<Change>) {
        let decode =
            |stored: &Arc<Stored>| Some((Arc::clone(&stored.key), self.services.decode(stored).ok()?));
        let previous = change.previous.as_ref().and_then(decode);
        let current = change.current.as_ref().and_then(decode);
        let mut owners = self.write();
        if let Some((key, service)) = previous {
            owners.release(&key, &service);
        }
        if let Some((key, service)) = current {
            owners.take(&key, &service);
        }
    }

    fn progress(&self, _revision: u64) {}

    fn compacted(&self, _revision: u64) {}

    /// The last known addresses stay in use until the reset that follows.
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

/// The addresses of a service. One without any has the address `None`.
fn addresses(service: &Object) -> impl Iterator<Item = &str> {
    let all = service.at("/spec/clusterIPs").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).filter(|address| *address != "None")
}

fn all_ports(service: &Object) -> impl Iterator<Item = u16> {
    ports(service).filter_map(node_port).chain(health_check_port(service))
}

fn needs_address(service: &Object) -> bool {
    service.str_at("/spec/type") != "ExternalName"
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
