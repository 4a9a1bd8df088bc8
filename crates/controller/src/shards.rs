//! Division of the objects of controllers among replicas.

mod keys;
mod lease;
mod member;
mod replica;
mod rules;
mod table;

pub(crate) use keys::Admission;
pub(crate) use keys::ShardKeys;
pub(crate) use keys::Subject;
pub(crate) use replica::Replica;
pub(crate) use table::Table;

use crate::leader::{ElectionConfigError, LeaderElection};
use kube_informer::Scope;
use std::{fmt, num::NonZeroU32};

/// The number of shards at most: each has a Lease that is renewed all the time.
const MAX_SHARDS: u32 = 1024;
/// The length of the name at most: with the number of a shard it is part of the value of a label.
const MAX_NAME: usize = 58;

/// Divides the objects of controllers among replicas: of several processes with the same configuration, each reconciles a part
/// of the objects.
///
/// The objects of each controller are divided by the hash of their uid into a fixed number of shards. Shard *i* has the Lease
/// `NAME-i`, with the rules of [`LeaderElection`].
///
/// 1. An object is reconciled by the holder of the Lease of its shard only, and each write of its
///    [`Context`](crate::Context) is sent only if that Lease is valid for longer than the request may take.
/// 2. A key is never reconciled by two replicas at once, also if its object is deleted and created again with a uid of another
///    shard: the new object waits until the holder of the old shard has finished with the old one, usually two seconds.
/// 3. The numbers of shards that two replicas hold differ by one at most, when no replica has started or ended for a while. A replica
///    that has too many finishes the reconciles in flight of a shard before it hands it over.
/// 4. The shards of a replica that dies are taken over when their Leases have expired.
/// 5. The first reconcile in a gained shard starts when the caches show everything that the previous holder wrote.
///
/// Each replica caches all objects, so that it can take over at once. Choose several times as many shards as replicas. The number of
/// shards must be the same in all replicas and cannot be changed while one of them runs. Controllers have to have the same names in
/// all replicas. The replicas need the permission to list and watch Leases besides reading and writing them.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{InformerFactory, Object};
/// use kube_informer_controller::{Action, BoxError, Context, Controller, LeaderElection, Manager, Sharding};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let server = kube_embedded_apiserver::ApiServer::start().await?;
/// # let client = server.client()?;
/// # let api = kube::Api::<ConfigMap>::default_namespaced(client.clone());
/// # let mut config = ConfigMap::default();
/// # config.metadata.name = Some("a".to_owned());
/// # api.create(&Default::default(), &config).await?;
/// # let (reconciled, mut called) = tokio::sync::mpsc::channel::<()>(1);
/// # let stop = called.recv();
/// # let reconcile = move |_: Object<ConfigMap>, _: Context| {
/// #     let _ = reconciled.try_send(());
/// #     async { Ok::<_, BoxError>(Action::done()) }
/// # };
/// // The same in each replica. In your program: .run(), until SIGINT or SIGTERM.
/// let factory = InformerFactory::new(client.clone());
/// let controller = Controller::new(&factory.of::<ConfigMap>(), client.clone()).run(reconcile);
/// Manager::new(&factory, client)
///     .add(controller)
///     .sharding(Sharding::new(LeaderElection::new("default", "my-operator"), 16))
///     .until(stop)
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "objects are divided when a manager runs with it"]
pub struct Sharding {
    pub(crate) election: LeaderElection,
    shards: u32,
}

impl Sharding {
    /// Divides objects into `shards`. The Leases are in the namespace of `election`, and their names begin with its name.
    pub fn new(election: LeaderElection, shards: u32) -> Self {
        Self { election, shards }
    }

    /// Checks the configuration. Returns the number of shards, and the namespace of the Leases.
    fn validate(&self) -> Result<(NonZeroU32, Scope), ElectionConfigError> {
        self.election.validate()?;
        let count = NonZeroU32::new(self.shards).filter(|count| count.get() <= MAX_SHARDS);
        let count = count.ok_or(ElectionConfigError::Shards(self.shards))?;
        let LeaderElection { namespace, name, .. } = &self.election;
        // Names of namespaces follow the same rules.
        let is_name = name.len() <= MAX_NAME && Scope::namespace(name).is_ok();
        match Scope::namespace(namespace) {
            Ok(scope) if is_name => Ok((count, scope)),
            _ => Err(ElectionConfigError::ShardLease { namespace: namespace.clone(), name: name.clone() }),
        }
    }
}

impl fmt::Debug for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sharding({} shards, {:?})", self.shards, self.election)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_that_cannot_work_are_errors() {
        let sharding = |name: &str, shards| Sharding::new(LeaderElection::new("ns", name), shards).validate();
        assert!(sharding("operator", 8).is_ok() && sharding("a", 1).is_ok());
        for shards in [0, 1025] {
            assert_eq!(sharding("operator", shards).unwrap_err(), ElectionConfigError::Shards(shards));
        }
        for name in ["", "-a", "A", "a.b", &"a".repeat(59)] {
            let error = sharding(name, 8).unwrap_err();
            assert!(matches!(error, ElectionConfigError::ShardLease { .. }), "{name}");
        }
    }
}
