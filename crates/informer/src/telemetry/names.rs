//! Names of informers and handlers in metrics.

use kube_informer_wire::sync::lock;
use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock, Mutex, MutexGuard},
};

/// Longest value of a label that describes a scope or a selector, in bytes.
const MAX_LABEL: usize = 63;

/// The informers of this process, for which there is one metrics recorder.
pub(super) static INFORMERS: LazyLock<Arc<Names>> = LazyLock::new(Arc::default);

/// Names in use, as they are shown, each with the other labels. Equal names get a number: `pods`, `pods#2`. A number is reused
/// after its holder is dropped, so that there are never more names than holders.
#[derive(Default)]
pub(crate) struct Names(Mutex<BTreeSet<(String, String)>>);

/// A name in use. Dropping it releases the name.
pub(crate) struct Name {
    names: Arc<Names>,
    /// The other labels, and the name as it is shown.
    used: (String, String),
}

impl Names {
    /// Takes `base`, or `base` with a number, that no other holder with the same other labels has.
    pub(super) fn take(self: &Arc<Self>, base: &str, labels: String) -> Name {
        let mut used = (labels, base.to_owned());
        let mut all = self.lock();
        let mut number = 1_u32;
        // The shown name is compared: the base of another holder may look like a number of this one.
        while all.contains(&used) {
            number = number.saturating_add(1);
            used.1 = format!("{base}#{number}");
        }
        all.insert(used.clone());
        drop(all);
        Name { names: Arc::clone(self), used }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(String, String)>> {
        lock(&self.0)
    }
}

impl Name {
    /// The name as it is shown.
    pub(super) fn shown(&self) -> &str {
        &self.used.1
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        self.names.lock().remove(&self.used);
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
        let take = || names.take("a", String::new());
        let (one, two) = (take(), take());
        assert_eq!((one.shown(), two.shown()), ("a", "a#2"));
        assert_eq!(names.take("b", String::new()).shown(), "b");
        assert_eq!(names.take("a", "other".into()).shown(), "a");
        drop(one);
        assert_eq!((take().shown(), two.shown()), ("a", "a#2"));
        drop(two);
        assert!(names.lock().is_empty(), "nothing is left behind");
    }

    #[test]
    fn a_name_that_looks_numbered_is_told_apart() {
        let names = Arc::new(Names::default());
        let taken: Vec<_> = ["a", "a", "a#2", "a"].map(|base| names.take(base, String::new())).into();
        let shown: Vec<_> = taken.iter().map(Name::shown).collect();
        assert_eq!(shown, ["a", "a#2", "a#2#2", "a#3"]);
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
