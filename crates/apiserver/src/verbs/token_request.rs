//! POST `/token` of a service account: a token for it.

use serde_json::{Value, json};

use super::decode::{BodyType, parse_body};
use super::error::{Conflict, DecodeError, Rejection, RequestError, VerbError};
use super::options::WriteOptions;
use super::{Content, Request, Response, WriteContext};
use crate::authentication::{ISSUER, Issuer, TokenSubject};
use crate::registry::{Object, Resource};
use crate::status::{FieldError, FieldErrors};

/// The shortest and the longest lifetime, in seconds.
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;
/// The lifetime of a token whose request names none.
const DEFAULT: i64 = 3600;

pub(crate) async fn create(
    context: &WriteContext,
    issuer: &Issuer,
    request: &Request,
) -> Result<Response, VerbError> {
    let options = WriteOptions::parse(&request.query, "CreateOptions")?;
    let (body, warnings) = BodyType::TOKEN_REQUEST.decode(parse_body(request)?, options.field_validation)?;
    let mut body = Object::new(body).ok_or(DecodeError::NotAnObject("TokenRequest"))?;
    let name = request.name()?;
    let uid = check_account(context, request, &body).await?;
    let spec = body.section_mut("spec");
    let asked = spec.get("audiences").and_then(Value::as_array).filter(|all| !all.is_empty());
    let audiences: Vec<String> = match asked {
        Some(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => vec![ISSUER.to_owned()],
    };
    let seconds = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or(DEFAULT);
    let errors = lifetime_errors(seconds);
    if !errors.is_empty() {
        return Err(invalid(request, errors));
    }
    spec.insert("audiences".to_owned(), json!(audiences));
    spec.insert("expirationSeconds".to_owned(), seconds.into());
    let reference = spec.entry("boundObjectRef").or_insert(Value::Null).clone();
    let account = (request.resource.storage_key(request.namespace(), name), uid.clone());
    let bound = bound_object(context, request, &reference).await?;
    let subject = TokenSubject {
        namespace: request.namespace().unwrap_or_default().to_owned(),
        name: name.to_owned(),
        uid: uid.clone(),
        bound: bound
            .iter()
            .map(|bound| (bound.claim, json!({"name": bound.name, "uid": bound.uid})))
            .collect(),
        keys: bound.map(|bound| (bound.key, bound.uid)).into_iter().chain([account]).collect(),
    };
    let token = issuer.issue(&subject, &audiences, seconds, &context.ids.uid());
    let token = token.ok_or(VerbError::NoRandomness)?;
    // The token is bound to them from now on. They may have been deleted since they were read.
    for (key, _) in &subject.keys {
        if context.storage.get(key).await?.is_none() {
            issuer.forget(key);
            return Err(VerbError::not_found(&request.resource, name));
        }
    }
    body.set_meta("name", Some(name));
    body.set_meta("namespace", request.namespace());
    body.set_meta("uid", Some(&uid));
    body.set_meta("creationTimestamp", Some(&context.clock.timestamp()));
    let status = json!({"token": token, "expirationTimestamp": context.clock.timestamp_in(seconds)});
    let root = body.root_mut();
    root.insert("kind".to_owned(), "TokenRequest".into());
    root.insert("apiVersion".to_owned(), "authentication.k8s.io/v1".into());
    root.insert("status".to_owned(), status);
    let content = Content::OtherKind { code: 201, object: body.into_value() };
    Ok(Response { content, warnings })
}

fn invalid(request: &Request, errors: FieldErrors) -> VerbError {
    VerbError::rejected(&request.resource, request.name.as_deref(), Rejection::InvalidTokenRequest(errors))
}

/// Checks that the body is about the service account of the URL, and returns the uid of that.
async fn check_account(
    context: &WriteContext,
    request: &Request,
    body: &Object,
) -> Result<String, VerbError> {
    let (resource, name) = (&request.resource, request.name()?);
    for (field, url) in [("name", Some(name)), ("namespace", request.namespace())] {
        let sent = body.meta_str(field);
        if !sent.is_empty() && Some(sent) != url {
            let why = format!("must match the service account {field} if specified");
            let error = FieldError::invalid(format!("metadata.{field}"), sent, why);
            return Err(invalid(request, [error].into()));
        }
    }
    let account = load(context, resource, request.namespace(), name).await?;
    let uid = account.uid().unwrap_or_default().to_owned();
    if let Some(sent) = body.uid().filter(|sent| *sent != uid) {
        let conflict = Conflict::TokenUid { sent: sent.to_owned(), found: uid };
        return Err(VerbError::rejected(resource, Some(name), conflict.into()));
    }
    Ok(uid)
}

fn lifetime_errors(seconds: i64) -> FieldErrors {
    const FIELD: &str = "spec.expirationSeconds";
    let why = match seconds {
        short if short < SHORTEST => "may not specify a duration less than 10 minutes",
        long if long > LONGEST => "may not specify a duration larger than 2^32 seconds",
        _ => return FieldErrors::new(),
    };
    [FieldError::invalid(FIELD, seconds, why)].into()
}

/// The object that a token is bound to.
struct BoundObject {
    claim: &'static str,
    key: String,
    name: String,
    uid: String,
}

async fn bound_object(
    context: &WriteContext,
    request: &Request,
    reference: &Value,
) -> Result<Option<BoundObject>, VerbError> {
    if reference.is_null() {
        return Ok(None);
    }
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (claim, plural) = match (text("apiVersion"), text("kind")) {
        ("v1", "Pod") => ("pod", "pods"),
        ("v1", "Node") => ("node", "nodes"),
        ("v1", "Secret") => ("secret", "secrets"),
        (version, kind) => {
            let object = format!("{version}, Kind={kind}");
            return Err(DecodeError::TokenBoundToOther(object).into());
        }
    };
    let snapshot = context.resources.snapshot();
    let found = snapshot.registry.find("", "v1", plural).ok();
    let resource = found.ok_or(RequestError::NoSuchResource)?;
    let namespace = request.namespace().filter(|_| resource.namespaced);
    let object = load(context, resource, namespace, text("name")).await?;
    let account = request.name()?;
    if claim == "pod" && object.str_at("/spec/serviceAccountName") != account {
        return Err(DecodeError::TokenBoundToForeignPod(account.to_owned()).into());
    }
    let uid = object.uid().unwrap_or_default();
    if !text("uid").is_empty() && text("uid") != uid {
        let conflict = Conflict::BoundObjectUid(text("uid").to_owned());
        return Err(VerbError::rejected(resource, Some(text("name")), conflict.into()));
    }
    let (key, name) = (resource.storage_key(namespace, text("name")), text("name").to_owned());
    Ok(Some(BoundObject { claim, key, name, uid: uid.to_owned() }))
}

async fn load(
    context: &WriteContext,
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
) -> Result<Object, VerbError> {
    let stored = context.storage.get(&resource.storage_key(namespace, name)).await?;
    let stored = stored.ok_or_else(|| VerbError::not_found(resource, name))?;
    Ok(resource.decode(&stored)?)
}
