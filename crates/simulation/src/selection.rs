//! Selectors of informers: which part of the collection a client requests.

use crate::{
    history::{Write, color_name, is_in},
    subject::NAMES,
};
use kube_informer::{FieldSelector, LabelSelector};

/// The selectors of an informer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Selection {
    #[default]
    Everything,
    /// The label selector `color=c`. Updates move objects in and out.
    Color(u64),
    /// The label selector `color!=c`, which also selects objects without labels.
    OtherColor(u64),
    /// The field selector `metadata.name=name`.
    Name(&'static str),
    /// The field selector `metadata.name!=name`.
    OtherName(&'static str),
    /// The field selector `spec.shade=c`: a selectable field of the custom resource, which updates change.
    Shade(u64),
    /// The label selector `color!=a` and the field selector `metadata.name!=name`.
    Both(u64, &'static str),
}

impl Selection {
    pub(crate) fn random(rng: &mut fastrand::Rng) -> Self {
        let name = NAMES[rng.usize(0..NAMES.len())];
        let color = rng.u64(0..3);
        match rng.u8(0..16) {
            0 | 1 => Self::Color(color),
            2 => Self::OtherColor(color),
            3 => Self::Name(name),
            4 => Self::OtherName(name),
            5 => Self::Shade(color),
            6 => Self::Both(color, name),
            _ => Self::Everything,
        }
    }

    /// The same selection by label, for resources without selectable fields.
    pub(crate) fn without_shade(self) -> Self {
        match self {
            Self::Shade(color) => Self::Color(color),
            other => other,
        }
    }

    /// The selection of these selectors, or everything if no other has them.
    pub(crate) fn of(labels: &LabelSelector, fields: &FieldSelector) -> Self {
        let colors =
            (0..3).flat_map(|color| [Self::Color(color), Self::OtherColor(color), Self::Shade(color)]);
        let names = NAMES.iter().flat_map(|name| [Self::Name(name), Self::OtherName(name)]);
        let both = NAMES.iter().flat_map(|name| (0..3).map(|color| Self::Both(color, name)));
        let mut all = colors.chain(names).chain(both);
        all.find(|selection| selection.labels() == *labels && selection.fields() == *fields)
            .unwrap_or_default()
    }

    pub(crate) fn labels(self) -> LabelSelector {
        let selector = match self {
            Self::Color(color) => format!("color={}", color_name(color)),
            Self::OtherColor(color) | Self::Both(color, _) => format!("color!={}", color_name(color)),
            _ => String::new(),
        };
        selector.parse().expect("a valid label selector")
    }

    pub(crate) fn fields(self) -> FieldSelector {
        let selector = match self {
            Self::Name(name) => format!("metadata.name={name}"),
            Self::OtherName(name) | Self::Both(_, name) => format!("metadata.name!={name}"),
            Self::Shade(color) => format!("spec.shade={}", color_name(color)),
            _ => String::new(),
        };
        selector.parse().expect("a valid field selector")
    }

    /// Whether it selects the state of an object after a write, or before it if the write is a delete.
    pub(crate) fn selects(self, write: &Write) -> bool {
        match self {
            Self::Everything => true,
            Self::Color(color) => !write.invalid && write.color == color,
            Self::OtherColor(color) => write.invalid || write.color != color,
            Self::Name(name) => write.key.name() == name,
            Self::OtherName(name) => write.key.name() != name,
            Self::Shade(color) => write.color == color,
            Self::Both(color, name) => {
                Self::OtherColor(color).selects(write) && Self::OtherName(name).selects(write)
            }
        }
    }
}

/// The part of the collection that one client requests: the selected objects of a namespace, or of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) namespace: Option<String>,
    pub(crate) selection: Selection,
}

impl Part {
    pub(crate) fn new(namespace: Option<&str>, selection: Selection) -> Self {
        Self { namespace: namespace.map(str::to_owned), selection }
    }

    /// Whether the state of an object after a write belongs to it, or before the write if that is a delete.
    pub(crate) fn includes(&self, write: &Write) -> bool {
        is_in(&write.key, self.namespace.as_deref()) && self.selection.selects(write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;
    use kube_informer::ObjectKey;

    #[test]
    fn an_object_without_labels_is_selected_only_by_an_inequality() {
        let mut history = History::new(100);
        let key = ObjectKey::namespaced("a", "x");
        let [valid, invalid] = [false, true].map(|invalid| history.put(&key, 1, invalid));
        assert!(Selection::Color(1).selects(&valid) && !Selection::Color(1).selects(&invalid));
        assert!(!Selection::OtherColor(1).selects(&valid) && Selection::OtherColor(1).selects(&invalid));
        assert!(Selection::Shade(1).selects(&valid) && Selection::Shade(1).selects(&invalid));
        assert!(!Selection::Both(0, "x").selects(&valid) && Selection::Both(0, "y").selects(&valid));
    }

    #[test]
    fn the_selectors_are_those_of_the_api() {
        assert_eq!(Selection::Color(2).labels().to_string(), "color=c2");
        assert_eq!(Selection::Both(0, "x").labels().to_string(), "color!=c0");
        assert_eq!(Selection::Both(0, "x").fields().to_string(), "metadata.name!=x");
        assert!(
            Selection::Everything.labels().is_everything() && Selection::Everything.fields().is_everything()
        );
    }
}
