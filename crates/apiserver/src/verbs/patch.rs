//! PATCH in its three forms.

use super::apply::MEDIA_TYPE;
use super::create::match_namespace;
use super::decode::decode_patched;
use super::error::{DecodeError, RequestError, VerbError};
use super::options::WriteOptions;
use super::update::{Change, Part, match_name, write};
use super::{Request, Response, WriteContext};
use crate::patch::{Patch, PatchKind};
use crate::schema::{Duplicate, parse_json};

pub(crate) async fn patch(
    context: &WriteContext,
    request: &Request,
    kind: PatchKind,
) -> Result<Response, VerbError> {
    let resource = &request.resource;
    let options = WriteOptions::parse(&request.query, "PatchOptions")?;
    let (patch, duplicates) = read(kind, request)?;
    let mut warnings = Vec::new();
    let name = request.name()?;
    let part = Part::of(request.subresource);
    let registry = &context.resources.snapshot().registry;
    let response = write(context, request, part, options.dry_run, |old| {
        let patched = patch.apply(old.value().clone(), resource.table(), &request.work)?;
        let decoded = decode_patched(registry, resource, patched, &duplicates, options.field_validation)?;
        warnings = decoded.warnings;
        let mut object = decoded.object;
        match_namespace(&mut object, request.namespace())?;
        match_name(&object, name)?;
        Ok(Change::Sent(object))
    })
    .await?;
    Ok(response.with_warnings(warnings))
}

/// The type of the body of a PATCH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    /// Server-side apply.
    Apply,
    Patch(PatchKind),
}

impl PatchType {
    /// The type that the media type names. Custom resources have no merge keys, so they take no strategic merge patches.
    pub(crate) fn parse(request: &Request) -> Result<Self, RequestError> {
        if request.content_type == MEDIA_TYPE {
            return Ok(Self::Apply);
        }
        match (PatchKind::of(&request.content_type), &request.resource.custom) {
            (None, _) | (Some(PatchKind::Strategic), Some(_)) => Err(unsupported(request)),
            (Some(kind), _) => Ok(Self::Patch(kind)),
        }
    }
}

fn unsupported(request: &Request) -> RequestError {
    const CUSTOM: &[&str] =
        &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
    match request.resource.custom {
        Some(_) => RequestError::UnsupportedMediaType(CUSTOM),
        None => RequestError::UnsupportedPatchType,
    }
}

/// The patch and the fields that its text held twice.
pub(crate) fn read(kind: PatchKind, request: &Request) -> Result<(Patch, Vec<Duplicate>), VerbError> {
    let parsed = parse_json(&request.body).map_err(DecodeError::PatchNotJson)?;
    Ok((Patch::read(kind, parsed.value)?, parsed.duplicates))
}
