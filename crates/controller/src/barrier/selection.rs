//! Which objects the selectors of a cache include.

use kube_informer::{FieldSelector, FieldTerm, LabelSelector, ShardSelector, SharedInformer, Uid};
use serde_json::Value;
use std::{borrow::Cow, collections::BTreeMap};

/// Whether the selectors of a cache include an object of the server.
pub(super) fn includes(cache: &SharedInformer<Value>, object: &Value) -> bool {
    matches_labels(cache.label_selector(), object)
        && matches_fields(cache.field_selector(), object)
        && matches_shards(cache.shard_selector(), object)
}

fn matches_shards(selector: &ShardSelector, object: &Value) -> bool {
    object["metadata"]["uid"].as_str().is_none_or(|uid| selector.matches(Uid::from(uid)))
}

fn matches_labels(selector: &LabelSelector, object: &Value) -> bool {
    let labels: BTreeMap<String, String> =
        serde_json::from_value(object["metadata"]["labels"].clone()).unwrap_or_default();
    selector.matches(&labels)
}

fn matches_fields(selector: &FieldSelector, object: &Value) -> bool {
    selector.terms().iter().all(|term| matches_term(term, object))
}

/// Field selectors compare texts. A field that is absent has the zero value of its type, which is not known here.
fn matches_term(term: &FieldTerm, object: &Value) -> bool {
    let found = term.field.split('.').try_fold(object, |value, name| value.get(name));
    let text = match found {
        Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => Cow::Owned(value.to_string()),
        _ => return matches!(&*term.value, "" | "false" | "0") == term.equal,
    };
    (*text == *term.value) == term.equal
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_are_evaluated_on_the_content() {
        let object = json!({
            "metadata": {"name": "a", "labels": {"app": "cart"}},
            "spec": {"nodeName": "n1", "paused": true, "count": 3},
        });
        for (labels, included) in [("app=cart", true), ("app!=cart", false), ("tier", false), ("", true)] {
            assert_eq!(matches_labels(&labels.parse().unwrap(), &object), included, "{labels}");
        }
        let fields = [
            ("metadata.name=a", true),
            ("metadata.name!=a", false),
            ("spec.nodeName=n2", false),
            ("spec.paused=true,spec.count=3", true),
            ("spec.absent=", true),
            ("spec.absent=false", true),
            ("spec.absent=x", false),
            ("spec.absent!=x", true),
        ];
        for (fields, included) in fields {
            assert_eq!(matches_fields(&fields.parse().unwrap(), &object), included, "{fields}");
        }
    }
}
