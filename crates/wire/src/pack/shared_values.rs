//! Parts that many objects have in common.

use super::interner::Interner;
use crate::{
    Owner,
    fields::{self, Found},
    identity::Identity,
};
use std::sync::Arc;

/// Shards of each kind of values that are swept while the lock is held: some ten microseconds.
const SWEEP_STEP: usize = 16;

/// All values are swept when a quarter as many contents have been dropped: each drop costs a look at four values.
const SWEEP_SHARE: usize = 4;

/// Labels, owners and indexed fields, each once for all objects that have the same.
#[derive(Default)]
pub(super) struct SharedValues {
    labels: Interner<[u8]>,
    owners: Interner<Owner>,
    /// Kinds of owners and their versions: one of a few in each owner.
    owner_kinds: Interner<str>,
    fields: Interner<Found>,
    /// Whether the sweep of all values has yet to look at some of them.
    sweeping: bool,
    /// How many contents had been dropped when that sweep began.
    swept_at: usize,
}

impl SharedValues {
    /// Replaces labels, owner and fields of an object by the shared copies of equal ones.
    pub(super) fn share(&mut self, identity: &mut Identity, fields: &mut Option<Arc<Found>>) {
        identity.labels.share(|labels| self.labels.intern(labels));
        identity.controller = identity.controller.take().map(|owner| self.share_owner(owner));
        *fields = fields.take().map(|fields| self.fields.intern(fields));
    }

    fn share_owner(&mut self, mut owner: Arc<Owner>) -> Arc<Owner> {
        if let Some(known) = self.owners.find(&owner) {
            return known;
        }
        let Owner { api_version, kind, .. } = Arc::make_mut(&mut owner);
        for text in [api_version, kind] {
            *text = self.owner_kinds.intern(Arc::clone(text));
        }
        self.owners.intern(owner)
    }

    /// Removes some of the values that no object has any more, if many contents were dropped since the last sweep. `dropped` is
    /// the number of contents that were ever dropped. Returns whether there may be more.
    pub(super) fn sweep_some(&mut self, dropped: usize) -> bool {
        let Self { labels, owners, owner_kinds, fields, sweeping, swept_at } = self;
        if !*sweeping {
            let values = labels.len() + owners.len() + owner_kinds.len() + fields.len();
            if dropped.wrapping_sub(*swept_at) <= values / SWEEP_SHARE {
                return false;
            }
            *swept_at = dropped;
            labels.begin_sweep();
            owners.begin_sweep();
            owner_kinds.begin_sweep();
            fields.begin_sweep();
        }
        let more = [
            labels.sweep_some(SWEEP_STEP),
            owners.sweep_some(SWEEP_STEP),
            owner_kinds.sweep_some(SWEEP_STEP),
            fields.sweep_some(SWEEP_STEP),
        ];
        *sweeping = more.contains(&true);
        *sweeping
    }

    /// Bytes of the labels.
    pub(super) fn label_bytes(&self) -> usize {
        self.labels.heap_size(<[u8]>::len)
    }

    /// Bytes of the owners.
    pub(super) fn owner_bytes(&self) -> usize {
        // Without their kinds and versions, which are in `owner_kinds`.
        let own = |owner: &Owner| size_of::<Owner>() + 2 * size_of::<usize>() + owner.name.len();
        self.owners.heap_size(own) + self.owner_kinds.heap_size(str::len)
    }

    /// Bytes of the indexed fields.
    pub(super) fn field_bytes(&self) -> usize {
        self.fields.heap_size(fields::heap_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_swept_only_after_many_were_dropped() {
        let mut shared = SharedValues::default();
        let labels =
            (0..1000).map(|number: usize| shared.labels.intern(number.to_string().into_bytes().into()));
        let mut used: Vec<_> = labels.collect();
        assert!(!shared.sweep_some(0) && !shared.sweep_some(250));
        used.truncate(400);
        assert!(shared.sweep_some(600), "the first of several steps");
        while shared.sweep_some(600) {}
        assert_eq!(shared.labels.len(), 400);
        assert!(!shared.sweep_some(700), "a hundred of four hundred");
        drop(used);
        while shared.sweep_some(1000) {}
        assert_eq!(shared.labels.len(), 0);
    }
}
