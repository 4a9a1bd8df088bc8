//! The objects a request selects: a scope and two selectors, narrowed to the smallest range of keys.

use std::cell::OnceCell;

use kube_informer_wire::{FieldSelector, LabelSelector, Lookup};
use serde_json::Value;

use super::request::{Resource, Scope};
use super::shards::{ShardField, ShardSelector};
use crate::storage::{Attributes, Stored, TypeHead};

/// The scope and the selectors of a request.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    /// The scope of the URL, narrowed by field selectors on one name or one namespace.
    scope: Scope,
    /// The prefix of all keys in scope; ends in `/`.
    prefix: String,
    /// The key, if the scope is one object.
    key: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    shards: ShardSelector,
    namespaced: bool,
    selects_nothing: bool,
}

impl Filter {
    pub(super) fn new(
        resource: &Resource,
        scope: &Scope,
        labels: &LabelSelector,
        fields: &FieldSelector,
    ) -> Self {
        let scope = narrow(resource, scope, fields);
        let namespace = match &scope {
            Scope::All => None,
            Scope::Namespace(namespace) => Some(namespace),
            Scope::Object { namespace, .. } => namespace.as_ref(),
        };
        let prefix = match namespace {
            Some(namespace) => format!("{}{namespace}/", resource.prefix),
            None => resource.prefix.clone(),
        };
        let key = match &scope {
            Scope::Object { name, .. } => Some(format!("{prefix}{name}")),
            _ => None,
        };
        Self {
            // A `/` in a selector value could name a key of another namespace; no object has such a name.
            selects_nothing: !is_path_safe(&scope),
            scope,
            prefix,
            key,
            labels: labels.clone(),
            fields: fields.clone(),
            shards: ShardSelector::default(),
            namespaced: resource.namespaced,
        }
    }

    /// Selects only objects of these shards.
    pub(super) fn with_shards(mut self, shards: &ShardSelector) -> Self {
        self.shards = shards.clone();
        self
    }

    pub(super) fn shards(&self) -> &ShardSelector {
        &self.shards
    }

    pub(super) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns the prefix of all keys in scope; ends in `/`.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the key, if the scope is one object.
    pub(super) fn single(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Returns a field and the only value it may have, if the field selector has such a term.
    pub(super) fn required_field(&self) -> Option<(&str, &str)> {
        let term =
            self.fields.terms().iter().find(|term| term.equal && *term.field != *"metadata.namespace")?;
        Some((&term.field, &term.value))
    }

    /// Returns whether there are selectors. The number of remaining objects is then unknown.
    pub(super) fn has_selectors(&self) -> bool {
        !self.labels.is_everything() || !self.fields.is_everything() || !self.shards.is_everything()
    }

    pub(super) fn selects(&self, stored: &Stored) -> bool {
        let in_scope = match &self.key {
            Some(key) => *stored.key == **key,
            None => stored.key.starts_with(&*self.prefix),
        };
        in_scope && self.selects_in_scope(stored)
    }

    /// Like [`selects`](Self::selects), for an object that is known to be in scope.
    pub(super) fn selects_in_scope(&self, stored: &Stored) -> bool {
        !self.selects_nothing
            && (self.labels.is_everything() || self.labels.matches(stored.document.attributes()))
            && (self.fields.is_everything() || self.fields.matches(&Fields::new(stored, self.namespaced)))
            && (self.shards.is_everything() || self.selects_shard(stored))
    }

    fn selects_shard(&self, stored: &Stored) -> bool {
        let path = match self.shards.field() {
            ShardField::Uid => "metadata.uid",
            ShardField::Namespace => "metadata.namespace",
        };
        let fields = Fields::new(stored, self.namespaced);
        self.shards.matches(fields.lookup(path).unwrap_or_default())
    }
}

/// Narrows a scope by field selectors on name and namespace. They stay in the selector too, so that a contradiction selects nothing.
fn narrow(resource: &Resource, scope: &Scope, fields: &FieldSelector) -> Scope {
    let name = fields.required("metadata.name").filter(|name| !name.is_empty());
    let namespace = match scope {
        Scope::Object { .. } => return scope.clone(),
        Scope::Namespace(namespace) => Some(namespace.as_str()),
        Scope::All if resource.namespaced => {
            fields.required("metadata.namespace").filter(|ns| !ns.is_empty())
        }
        Scope::All => None,
    };
    match (name, namespace) {
        (Some(name), namespace) if namespace.is_some() || !resource.namespaced => {
            Scope::Object { namespace: namespace.map(str::to_owned), name: name.to_owned() }
        }
        (_, Some(namespace)) => Scope::Namespace(namespace.to_owned()),
        (_, None) => Scope::All,
    }
}

fn is_path_safe(scope: &Scope) -> bool {
    match scope {
        Scope::All => true,
        Scope::Namespace(namespace) => !namespace.contains('/'),
        Scope::Object { namespace, name } => {
            !name.contains('/') && !namespace.as_deref().unwrap_or_default().contains('/')
        }
    }
}

impl Lookup for Attributes {
    fn lookup(&self, key: &str) -> Option<&str> {
        self.label(key)
    }
}

/// Returns a selectable field of an object: the name from its key, other fields from its attributes. `metadata.namespace` is not
/// handled here, because the key does not tell whether the resource is namespaced.
pub(super) fn field<'s>(stored: &'s Stored, name: &str) -> Option<&'s str> {
    match name {
        "metadata.name" => Some(stored.name()),
        other => stored.document.attributes().field(other),
    }
}

/// The selectable fields of an object, for a selector.
struct Fields<'a> {
    stored: &'a Stored,
    namespaced: bool,
    /// The object with every leaf as text. Decoded only for fields that were not selectable when the object was written.
    content: OnceCell<Value>,
}

impl<'a> Fields<'a> {
    fn new(stored: &'a Stored, namespaced: bool) -> Self {
        Self { stored, namespaced, content: OnceCell::new() }
    }

    fn content_field(&self, key: &str) -> Option<&str> {
        let content = self.content.get_or_init(|| {
            let value = self.stored.to_value(&TypeHead::new("", "")).unwrap_or_default();
            as_text(value)
        });
        key.split('.').try_fold(content, |value, name| value.get(name))?.as_str()
    }
}

impl Lookup for Fields<'_> {
    fn lookup(&self, key: &str) -> Option<&str> {
        match key {
            "metadata.namespace" => self.namespaced.then(|| self.stored.parent()),
            other => field(self.stored, other).or_else(|| self.content_field(other)),
        }
    }
}

fn as_text(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, as_text(value))).collect(),
        Value::Bool(flag) => flag.to_string().into(),
        Value::Number(number) => number.to_string().into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Document;
    use serde_json::json;

    fn filter(scope: Scope, labels: &str, fields: &str) -> Filter {
        let pods = Resource { prefix: "/pods/".to_owned(), namespaced: true, cached: true };
        Filter::new(&pods, &scope, &labels.parse().unwrap(), &fields.parse().unwrap())
    }

    fn pod(key: &str) -> Stored {
        let document = json!({"metadata": {"labels": {"app": "web"}}});
        let document = Document::encode(&document, [("spec.nodeName", "n1")]).unwrap();
        Stored { key: key.into(), revision: 1, document }
    }

    #[test]
    fn a_namespace_ends_at_its_slash() {
        let one = filter(Scope::Namespace("a".to_owned()), "", "");
        assert!(one.selects(&pod("/pods/a/x")));
        assert!(!one.selects(&pod("/pods/ab/x")));
    }

    #[test]
    fn name_and_namespace_narrow_the_scope() {
        assert_eq!(filter(Scope::All, "", "metadata.namespace=a").prefix(), "/pods/a/");
        assert_eq!(filter(Scope::All, "", "metadata.name=x").single(), None);
        assert_eq!(
            filter(Scope::All, "", "metadata.name=x,metadata.namespace=a").single(),
            Some("/pods/a/x")
        );
        assert_eq!(
            filter(Scope::Namespace("a".to_owned()), "", "metadata.name=x").single(),
            Some("/pods/a/x")
        );
        assert_eq!(filter(Scope::All, "", "metadata.namespace!=a").prefix(), "/pods/");
    }

    #[test]
    fn a_contradiction_selects_nothing() {
        let contradiction = filter(Scope::Namespace("a".to_owned()), "", "metadata.namespace=b");
        assert!(!contradiction.selects(&pod("/pods/a/x")));
        let traversal = filter(Scope::All, "", "metadata.namespace=a/x");
        assert!(!traversal.selects(&pod("/pods/a/x/y")));
    }

    #[test]
    fn fields_that_became_selectable_later_are_read_from_the_content() {
        let document = json!({"metadata": {}, "spec": {"color": "red", "size": 3, "on": true}});
        let document = Document::encode(&document, []).unwrap();
        let stored = Stored { key: "/pods/a/x".into(), revision: 1, document };
        assert!(
            filter(Scope::All, "", "spec.color=red,spec.size=3,spec.on=true,spec.none=").selects(&stored)
        );
        assert!(!filter(Scope::All, "", "spec.color=blue").selects(&stored));
    }

    #[test]
    fn selectors_match_labels_and_fields() {
        assert!(filter(Scope::All, "app=web", "spec.nodeName=n1").selects(&pod("/pods/a/x")));
        assert!(!filter(Scope::All, "app=db", "").selects(&pod("/pods/a/x")));
        assert!(!filter(Scope::All, "", "spec.nodeName=n2").selects(&pod("/pods/a/x")));
        assert!(
            filter(Scope::All, "", "status.phase=").selects(&pod("/pods/a/x")),
            "a missing field is empty"
        );
    }
}
