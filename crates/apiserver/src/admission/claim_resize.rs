//! `PersistentVolumeClaimResize`: a claim grows if it is bound, and if its storage class allows it.

use serde_json::Value;

use super::default_class::STORAGE_CLASS;
use super::index::Index;
use crate::registry::Object;
use crate::schema::Quantity;

/// Checks a claim that replaces `old`.
pub(super) fn check(classes: &Index, claim: &Object, old: &Object) -> Result<(), String> {
    if size(claim) <= size(old) {
        return Ok(());
    }
    if old.str_at("/status/phase") != "Bound" {
        return Err("Only bound persistent volume claims can be expanded".to_owned());
    }
    let class = class_of(claim);
    let allowed = class == class_of(old)
        && classes
            .known(None, class)
            .is_some_and(|class| class.at("/allowVolumeExpansion") == Some(&Value::Bool(true)));
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    if allowed { Ok(()) } else { Err(why.to_owned()) }
}

/// Validation rejects a claim without a size.
fn size(claim: &Object) -> Option<Quantity> {
    claim.str_at("/spec/resources/requests/storage").parse().ok()
}

fn class_of(claim: &Object) -> &str {
    let annotation = claim.metadata().get("annotations").and_then(|all| all.get(STORAGE_CLASS));
    annotation.and_then(Value::as_str).unwrap_or_else(|| claim.str_at("/spec/storageClassName"))
}
