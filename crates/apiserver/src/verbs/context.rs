//! The context of writes.

use std::sync::Arc;

use crate::admission::Admission;
use crate::clock::Clock;
use crate::ids::Ids;
use crate::registry::Resource;
use crate::service_addresses::ServiceAddresses;
use crate::serving::ServedResources;
use crate::storage::Storage;

/// The parts of a server that writes need. Reads need [`Caches`](crate::caches::Caches) instead.
pub(crate) struct WriteContext {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) resources: Arc<ServedResources>,
    /// The resource of namespaces.
    pub(crate) namespaces: Arc<Resource>,
    /// The resource of disruption budgets, which evictions look at.
    pub(crate) disruption_budgets: Arc<Resource>,
    pub(crate) admission: Admission,
    pub(crate) service_addresses: Arc<ServiceAddresses>,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    /// Whether garbage collection runs. Without it a delete does not mark objects whose dependents would be orphaned by default.
    pub(crate) garbage_collection: bool,
    /// Bytes of one stored object.
    pub(crate) object_bytes: usize,
}
