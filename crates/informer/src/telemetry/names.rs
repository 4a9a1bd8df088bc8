//! Names of informers and handlers in metrics.

use kube_informer_wire::sync::lock;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock, Mutex, MutexGuard},
};

/// Longest value of a label that describes a scope or a selector, in bytes.
const MAX_LABEL: usize = 63;

/// The informers of this process, for which there is one metrics recorder.
pub(super) static INFORMERS: LazyLock<Arc<Names>> = LazyLock::new(Arc::default);

/// Names in use. Equal names get a number: `pods`, `pods#2`. A number is reused after its holder is dropped, so that there are
/// never more names than holders.
#[derive(Default)]
pub(crate) struct Names(Mutex<BTreeMap<String, BTreeSet<u32>>>);

/// A name in use. Dropping it releases the name.
pub(crate) struct Name {
    names: Arc<Names>,
    identity: String,
    number: u32,
}

impl Names {
    /// Takes a name that no other holder of an equal identity has.
    pub(super) fn take(self: &Arc<Self>, identity: String) -> Name {
        let mut used = self.lock();
        let numbers = used.entry(identity.clone()).or_default();
        let number = (1..).find(|number| !numbers.contains(number)).unwrap_or(u32::MAX);
        numbers.insert(number);
        drop(used);
        Name { names: Arc::clone(self), identity, number }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<u32>>> {
        lock(&self.0)
    }
}

impl Name {
    /// The name as it is shown: `base`, with a number if it is not the first.
    pub(super) fn of(&self, base: &str) -> String {
        if self.number == 1 { base.to_owned() } else { format!("{base}#{}", self.number) }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let mut used = self.names.lock();
        if let Some(numbers) = used.get_mut(&self.identity) {
            numbers.remove(&self.number);
            if numbers.is_empty() {
                used.remove(&self.identity);
            }
        }
    }
}

/// A text of any length as the value of a label. A long one is cut, and keeps a hash of the whole so that it stays distinct.
pub(super) fn bounded(text: &str) -> String {
    if text.len() <= MAX_LABEL {
        return text.to_owned();
    }
    // FNV-1a: the same in every process and version, unlike the hasher of the standard library.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let suffix = format!("~{:08x}", hash as u32);
    let end = (0..=MAX_LABEL.saturating_sub(suffix.len())).rev().find(|&at| text.is_char_boundary(at));
    format!("{}{suffix}", &text[..end.unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_are_numbered_and_numbers_are_used_again() {
        let names = Arc::new(Names::default());
        let take = || names.take("a".into());
        let (one, two) = (take(), take());
        assert_eq!((one.of("a"), two.of("a")), ("a".into(), "a#2".into()));
        assert_eq!(names.take("b".into()).of("b"), "b");
        drop(one);
        assert_eq!((take().of("a"), two.of("a")), ("a".into(), "a#2".into()));
        drop(two);
        assert!(names.lock().is_empty(), "nothing is left behind");
    }

    #[test]
    fn long_texts_are_cut_and_stay_distinct() {
        let long = |last: &str| bounded(&format!("app in ({}{last})", "ä,".repeat(100)));
        assert_eq!(bounded("app=cart"), "app=cart");
        assert!(long("x").len() <= MAX_LABEL && long("x").starts_with("app in (ä"));
        assert_ne!(long("x"), long("y"));
        assert_eq!(bounded(&"a".repeat(64)), format!("{}~{}", "a".repeat(54), "f35ebbe5"), "stable");
    }
}
