//! Descriptions of the fields that every object has. Those of other built-in types are not known here.

use serde_json::Value;

pub(super) const OBJECT_META: &str = "meta.v1.ObjectMeta";

/// Adds the description of a field, if it has one.
pub(super) fn describe(mut schema: Value, of_type: &str, field: &str) -> Value {
    if let Some(text) = description(of_type, field) {
        schema["description"] = text.into();
    }
    schema
}

/// The description of a field of a kind, or of the metadata.
fn description(of_type: &str, field: &str) -> Option<&'static str> {
    Some(match (of_type, field) {
        (OBJECT_META, field) => return metadata(field),
        (_, "apiVersion") => "APIVersion defines the group and version of the schema of this object.",
        (_, "kind") => "Kind is the name of the type of this object, in CamelCase. It cannot be changed.",
        (_, "metadata") => "Standard object's metadata.",
        _ => return None,
    })
}

fn metadata(field: &str) -> Option<&'static str> {
    Some(match field {
        "annotations" => "Annotations are values for tools. They cannot be selected by.",
        "creationTimestamp" => {
            "CreationTimestamp is a timestamp: when the server created the object. Set by the server."
        }
        "deletionGracePeriodSeconds" => {
            "Seconds between the deletion timestamp and the removal of the object."
        }
        "deletionTimestamp" => {
            "DeletionTimestamp is the time after which the object is removed, once its list of finalizers is empty. Set by the \
             server when a client deletes the object."
        }
        "finalizers" => {
            "The object is removed only when this list is empty. Each entry names the component that removes it."
        }
        "generateName" => {
            "GenerateName is a prefix: without a name, the server adds a random suffix to make one."
        }
        "generation" => "A number that increases with every change of the desired state. Set by the server.",
        "labels" => "Labels are values that objects are selected by.",
        "managedFields" => "ManagedFields records which manager set which fields. Maintained by the server.",
        "name" => "Name is unique among the objects of this kind in the namespace. It cannot be changed.",
        "namespace" => "Namespace is the space in which the name is unique. It cannot be changed.",
        "ownerReferences" => {
            "The objects that this one depends on. It is garbage collected when all of them are deleted."
        }
        "resourceVersion" => {
            "An opaque value that changes with every write of the object, for optimistic locking and watches. Set by the server."
        }
        "selfLink" => "Deprecated: not set any more.",
        "uid" => {
            "UID is unique in time and space: an object that is created again has another. Set by the server."
        }
        _ => return None,
    })
}
