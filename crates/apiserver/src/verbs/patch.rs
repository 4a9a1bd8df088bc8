//! PATCH in its three forms.

use super::create::match_namespace;
use super::decode::decode_patched;
use super::options::WriteOptions;
use super::update::{Change, Part, match_name, write};
use super::{Answer, Request};
use crate::engine::Engine;
use crate::patch::{MAX_OPERATIONS, Patch, PatchError, PatchKind};
use crate::schema::parse_json;
use crate::status::Status;

pub(crate) async fn patch(engine: &Engine, request: &Request) -> Result<Answer, Status> {
    let resource = &request.resource;
    let kind = kind_of(request)?;
    let options = WriteOptions::parse(&request.query, "PatchOptions")?;
    let (patch, duplicates) = read(kind, request)?;
    let mut warnings = Vec::new();
    let part = Part::of(request.subresource);
    let answer = write(engine, request, part, options.dry_run, |old| {
        let patched = patch.apply(old.value().clone(), resource.table()).map_err(|e| patch_status(&e))?;
        let decoded = decode_patched(engine, resource, patched, &duplicates, options.field_validation)?;
        warnings = decoded.warnings;
        let mut object = decoded.object;
        match_namespace(&mut object, &request.namespace)?;
        match_name(&object, &request.name)?;
        Ok(Change::Sent(object))
    })
    .await
    .map_err(|e| e.status(resource, &request.name))?;
    Ok(answer.with_warnings(warnings))
}

/// How the body is meant. Custom kinds have no merge keys, so nobody can merge strategically into them.
pub(crate) fn kind_of(request: &Request) -> Result<PatchKind, Status> {
    const CUSTOM: &[&str] =
        &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
    match (PatchKind::of(&request.content_type), &request.resource.custom) {
        (None | Some(PatchKind::Strategic), Some(_)) => Err(Status::unsupported_media_type(CUSTOM)),
        (None, None) => Err(Status::unsupported_patch_type()),
        (Some(kind), _) => Ok(kind),
    }
}

/// The patch and the fields that its text held twice.
pub(crate) fn read(kind: PatchKind, request: &Request) -> Result<(Patch, Vec<String>), Status> {
    let parsed =
        parse_json(&request.body).map_err(|e| Status::bad_request(format!("error decoding patch: {e}")))?;
    let patch = Patch::read(kind, parsed.value).map_err(|e| patch_status(&e))?;
    Ok((patch, parsed.duplicates))
}

pub(crate) fn patch_status(error: &PatchError) -> Status {
    match error {
        PatchError::Malformed(_) => Status::bad_request(error.to_string()),
        PatchError::Contradictory(why) => Status::unmapped(why),
        PatchError::TooManyOperations(found) => Status::too_many_operations(MAX_OPERATIONS, *found),
        PatchError::DoesNotApply(_) => Status::patch_rejected(),
    }
}
