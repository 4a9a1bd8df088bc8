//! Selectors, field paths, object keys and resource versions.

use crate::{halves, text};
use kube_informer_wire::{FieldPath, FieldSelector, LabelSelector, ObjectKey, ResourceVersion};

/// The canonical form of a label selector parses as an equal one.
pub fn label_selector(data: &[u8]) {
    let Some(Ok(selector)) = text(data).map(LabelSelector::parse) else { return };
    assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector.clone()), "{selector}");
    assert_eq!(LabelSelector::new(selector.requirements().to_vec()), selector);
}

/// The canonical form of a field selector parses as an equal one, and a field with the value of a term matches the
/// term exactly if it tests for equality.
pub fn field_selector(data: &[u8]) {
    let Some(Ok(selector)) = text(data).map(FieldSelector::parse) else { return };
    assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector.clone()), "{selector}");
    for term in selector.terms() {
        let one = FieldSelector::new([term.clone()]);
        assert_eq!(one.matches(&[(&*term.field, &*term.value)][..]), term.equal, "{one}");
    }
}

/// The canonical form of a field path parses as an equal one, and a path overlaps itself.
pub fn field_path(data: &[u8]) {
    let Some(Ok(path)) = text(data).map(str::parse::<FieldPath>) else { return };
    assert_eq!(path.to_string().parse::<FieldPath>(), Ok(path.clone()), "{path}");
    assert!(path.overlaps(&path) && !path.steps().is_empty());
}

/// A key keeps its text and equals a key of its parts.
pub fn key(data: &[u8]) {
    let Some(text) = text(data) else { return };
    match text.parse::<ObjectKey>() {
        Ok(key) => {
            assert_eq!(key.to_string(), text);
            assert_eq!(ObjectKey::new(key.namespace(), key.name()), key);
            assert!(!key.name().is_empty() && !key.name().contains('/'));
        }
        Err(error) => assert!(text.is_empty() || text.contains('/'), "{error}"),
    }
}

/// A resource version keeps its text; only numeric versions are ordered, as numbers.
pub fn version(data: &[u8]) {
    let Some((Some(a), Some(b))) = halves(data).map(|(a, b)| (text(a), text(b))) else { return };
    let (one, other) = (ResourceVersion::from(a), ResourceVersion::from(b));
    assert_eq!((one.to_string(), other.to_string()), (a.to_owned(), b.to_owned()));
    assert_eq!(one == other, a == b);
    let older = matches!((one.number(), other.number()), (Some(one), Some(other)) if one < other);
    assert_eq!(one.is_older_than(&other), older);
    assert_eq!(one.partial_cmp(&other), other.partial_cmp(&one).map(std::cmp::Ordering::reverse));
}
