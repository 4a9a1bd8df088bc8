//! The state that a world must reach when faults have ended.

use super::{Child, SiteState, State, Truth};
use std::collections::BTreeMap;

impl Truth {
    /// The first difference from the specification; `None` if there is none.
    pub(in crate::controllers) fn difference(&self) -> Option<String> {
        let state = self.lock();
        let sites = state.sites.iter().find_map(|(name, site)| {
            Some(format!("site {name}: {}", difference(&state, site, self.settings.finalizer)?))
        });
        sites.or_else(|| {
            let exists = |uid: &str| state.sites.values().any(|site| site.uid == uid);
            let orphan = state.children.iter().find(|(_, child)| !exists(&child.owner));
            let account = state.accounts.keys().find(|uid| !exists(uid));
            let orphan = orphan.map(|(name, _)| format!("child {name} has no site"));
            orphan.or(account.map(|uid| format!("the account of {uid} has no site")))
        })
    }

    /// The children whose site does not exist, which the garbage collector of a cluster deletes.
    pub(in crate::controllers) fn orphans(&self) -> Vec<String> {
        let state = self.lock();
        let exists = |uid: &str| state.sites.values().any(|site| site.uid == uid);
        let orphans = state.children.iter().filter(|(_, child)| !exists(&child.owner));
        orphans.map(|(name, _)| name.clone()).collect()
    }
}

fn difference(state: &State, site: &SiteState, finalizer: bool) -> Option<String> {
    if site.deleting {
        return Some("is still deleting".to_owned());
    }
    if finalizer && !site.finalizer {
        return Some("has no finalizer".to_owned());
    }
    if finalizer && state.accounts.get(&site.uid) != Some(&site.value) {
        return Some(format!("its account is {:?}, not {:?}", state.accounts.get(&site.uid), site.value));
    }
    let children = state.children.values().filter(|child| child.owner == site.uid);
    let found: BTreeMap<u32, &str> =
        children.map(|Child { slot, value, .. }| (*slot, value.as_str())).collect();
    let expected: BTreeMap<u32, &str> = (0..site.children).map(|slot| (slot, site.value.as_str())).collect();
    if found != expected {
        return Some(format!("its children are {found:?}, not {expected:?}"));
    }
    if site.status != Some((site.generation, site.children)) {
        return Some(format!("its status is {:?}, not {:?}", site.status, (site.generation, site.children)));
    }
    None
}
