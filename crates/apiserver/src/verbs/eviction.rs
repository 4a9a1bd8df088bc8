//! POST `/eviction`: deletes a pod, as far as its disruption budget allows.

use serde_json::{Map, Value, json};

use super::decode::{BodyType, parse_body};
use super::delete::{DeleteOptions, check_preconditions, remove};
use super::error::{Blocked, DecodeError, Rejection, VerbError};
use super::options::WriteOptions;
use super::{Request, Response, WriteContext};
use crate::registry::{Object, Resource};
use crate::storage::{Range, Update, guaranteed_update};

/// Attempts to delete a pod that others write at the same time.
const ATTEMPTS: usize = 20;
/// The most pods of a budget whose deletion its controller has not confirmed.
const MAX_DISRUPTED_PODS: usize = 2000;

pub(crate) async fn evict(context: &WriteContext, request: &Request) -> Result<Response, VerbError> {
    let options = WriteOptions::parse(&request.query, "CreateOptions")?;
    let (eviction, warnings) = BodyType::EVICTION.decode(parse_body(request)?, options.field_validation)?;
    let delete = eviction.get("deleteOptions").filter(|delete| !delete.is_null()).cloned();
    let delete: DeleteOptions = serde_json::from_value(delete.unwrap_or_else(|| json!({})))
        .map_err(|error| DecodeError::DeleteOptions { options: "deleteOptions", error })?;
    let delete = if options.dry_run { delete.dry_run() } else { delete };
    let eviction = Eviction { context, request, delete };
    for attempt in 1.. {
        match eviction.attempt().await {
            // Another write to the pod came first.
            Err(error) if error.is_conflict() && !eviction.delete.has_version() && attempt < ATTEMPTS => {}
            other => {
                other?;
                break;
            }
        }
    }
    Ok(Response::created().with_warnings(warnings))
}

struct Eviction<'a> {
    context: &'a WriteContext,
    request: &'a Request,
    delete: DeleteOptions,
}

/// How a disruption budget allows an eviction.
enum Allowed {
    /// The pod may be deleted.
    Always,
    /// The pod may be deleted as long as it stays as it is, because it does not count as healthy.
    AsIs { budget: String },
}

impl Eviction<'_> {
    async fn attempt(&self) -> Result<(), VerbError> {
        let (resource, name) = (&self.request.resource, self.request.name()?);
        let stored = self.context.storage.get(&self.request.key()?).await?;
        let stored = stored.ok_or_else(|| VerbError::not_found(resource, name))?;
        let pod = resource.decode(&stored)?;
        let phase = pod.str_at("/status/phase");
        if pod.is_deleting() || ["Succeeded", "Failed"].contains(&phase) {
            return self.delete(self.delete.clone()).await;
        }
        let as_is = || self.delete.clone().at_version(pod.resource_version());
        if phase == "Pending" {
            return self.delete(as_is()).await;
        }
        match self.check_budget(&pod).await? {
            Allowed::Always => self.delete(self.delete.clone()).await,
            Allowed::AsIs { budget } => match self.delete(as_is()).await {
                Err(error) if error.is_conflict() && !self.delete.has_version() => {
                    Err(blocked(resource, name, Blocked::processing(&budget)))
                }
                other => other,
            },
        }
    }

    /// Checks the disruption budget of a running pod, and charges it.
    async fn check_budget(&self, pod: &Object) -> Result<Allowed, VerbError> {
        let (resource, name) = (&self.request.resource, pod.name().unwrap_or_default());
        let budgets = self.budgets(pod).await?;
        let budget = match &budgets[..] {
            [] => return Ok(Allowed::Always),
            [budget] => budget,
            _ => return Err(blocked(resource, name, Blocked::SeveralBudgets)),
        };
        let budget_name = budget.name().unwrap_or_default();
        if !is_ready(pod) {
            let healthy = |field: &str| number(budget, field);
            let enough =
                healthy("currentHealthy") >= healthy("desiredHealthy") && healthy("desiredHealthy") > 0;
            if enough || budget.str_at("/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow" {
                return Ok(Allowed::AsIs { budget: budget_name.to_owned() });
            }
        }
        self.charge(budget_name, name).await?;
        Ok(Allowed::Always)
    }

    /// Takes one disruption from a budget, if it has one left.
    async fn charge(&self, budget: &str, pod: &str) -> Result<(), VerbError> {
        let budgets = &self.context.disruption_budgets;
        let key = budgets.storage_key(self.request.namespace(), budget);
        let now = self.context.clock.timestamp();
        let charged = guaranteed_update(&*self.context.storage, &key, None, |stored| {
            let mut object = budgets.decode(stored)?;
            check(&object).map_err(|why| match why {
                Refusal::Blocked(why) => blocked(&self.request.resource, pod, why),
                Refusal::Forbidden(why) => {
                    VerbError::rejected(budgets, Some(budget), Rejection::Forbidden(why.to_owned()))
                }
            })?;
            if self.delete.is_dry_run() {
                return Ok(Update::Unchanged);
            }
            disrupt(&mut object, pod, &now);
            Ok(Update::Write(budgets.encode(&object)?))
        })
        .await;
        charged.map(|_| ()).map_err(|error| VerbError::update(budgets, budget, error))
    }

    /// Returns the budgets whose selector matches a pod.
    async fn budgets(&self, pod: &Object) -> Result<Vec<Object>, VerbError> {
        let resource = &self.context.disruption_budgets;
        let namespace = self.request.namespace().unwrap_or_default();
        let range =
            Range { prefix: format!("{}{namespace}/", resource.storage_prefix()), ..Range::default() };
        let empty = Map::new();
        let labels = pod.metadata().get("labels").and_then(Value::as_object).unwrap_or(&empty);
        let mut matching = Vec::new();
        for stored in self.context.storage.list(&range).await?.items {
            let budget = resource.decode(&stored)?;
            if budget.at("/spec/selector").is_some_and(|selector| selects(selector, labels)) {
                matching.push(budget);
            }
        }
        Ok(matching)
    }

    /// Marks the pod as disrupted, and deletes it.
    async fn delete(&self, mut options: DeleteOptions) -> Result<(), VerbError> {
        let (resource, name) = (&self.request.resource, self.request.name()?);
        if !options.is_dry_run() {
            let now = self.context.clock.timestamp();
            let marked = guaranteed_update(&*self.context.storage, &self.request.key()?, None, |stored| {
                let mut pod = resource.decode(stored)?;
                check_preconditions(resource, &pod, &options)?;
                let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting", "lastProbeTime": null});
                set_condition(pod.section_mut("status"), condition, &now);
                Ok(Update::Write(resource.encode_within(&pod, self.context.object_bytes)?))
            })
            .await
            .map_err(|error| VerbError::update(resource, name, error))?;
            options.follow_version(marked.stored().revision);
        }
        remove(self.context, resource, self.request.namespace(), name, &options).await.map(|_| ())
    }
}

fn blocked(resource: &Resource, pod: &str, why: Blocked) -> VerbError {
    VerbError::rejected(resource, Some(pod), Rejection::EvictionBlocked(why))
}

/// Why a budget cannot be charged.
enum Refusal {
    Blocked(Blocked),
    Forbidden(&'static str),
}

fn number(budget: &Object, field: &str) -> i64 {
    budget.at("/status").and_then(|status| status[field].as_i64()).unwrap_or_default()
}

/// Checks that a budget, whose status its controller maintains, has a disruption left.
fn check(budget: &Object) -> Result<(), Refusal> {
    let name = budget.name().unwrap_or_default();
    if number(budget, "observedGeneration") < budget.generation() {
        return Err(Refusal::Blocked(Blocked::processing(name)));
    }
    if number(budget, "disruptionsAllowed") < 0 {
        return Err(Refusal::Forbidden("pdb disruptions allowed is negative"));
    }
    let disrupted = budget.at("/status/disruptedPods").and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > MAX_DISRUPTED_PODS) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Refusal::Forbidden(why));
    }
    if number(budget, "disruptionsAllowed") > 0 {
        return Ok(());
    }
    let conditions = budget.at("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let unmet = conditions.into_iter().find(|condition| {
        condition["type"] == "DisruptionAllowed"
            && condition["status"] == "False"
            && !text(condition, "message").is_empty()
    });
    let (needed, found) = (number(budget, "desiredHealthy"), number(budget, "currentHealthy"));
    let cause = match unmet {
        Some(condition) if condition["reason"] == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            text(condition, "message")
        ),
        _ if found <= needed => {
            format!("The disruption budget {name} needs {needed} healthy pods and has {found} currently")
        }
        Some(condition) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            text(condition, "reason"),
            text(condition, "message")
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    };
    Err(Refusal::Blocked(Blocked::Budget { cause, retry_after: None }))
}

/// Takes one disruption, for a pod.
fn disrupt(budget: &mut Object, pod: &str, now: &str) {
    let allowed = number(budget, "disruptionsAllowed") - 1;
    let generation = number(budget, "observedGeneration");
    let status = budget.section_mut("status");
    status.insert("disruptionsAllowed".to_owned(), allowed.into());
    if allowed == 0 {
        let condition = json!({"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
            "observedGeneration": generation});
        set_condition(status, condition, now);
    }
    let disrupted = status.entry("disruptedPods").or_insert(Value::Null);
    if disrupted.is_null() {
        *disrupted = json!({});
    }
    disrupted[pod] = now.into();
}

/// Sets a condition. Its transition time changes with its status.
fn set_condition(status: &mut Map<String, Value>, mut condition: Value, now: &str) {
    let conditions = status.entry("conditions").or_insert(Value::Null);
    if conditions.is_null() {
        *conditions = json!([]);
    }
    let Some(list) = conditions.as_array_mut() else { return };
    let known = list.iter_mut().find(|known| known["type"] == condition["type"]);
    condition["lastTransitionTime"] = match &known {
        Some(known) if known["status"] == condition["status"] => known["lastTransitionTime"].clone(),
        _ => now.into(),
    };
    match known {
        Some(known) => *known = condition,
        None => list.push(condition),
    }
}

fn is_ready(pod: &Object) -> bool {
    let conditions = pod.at("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Returns whether a label selector matches. An empty one matches everything.
fn selects(selector: &Value, labels: &Map<String, Value>) -> bool {
    let Some(fields) = selector.as_object() else { return false };
    let exact = fields.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let expressions = fields.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    exact.into_iter().all(|(key, value)| labels.get(key) == Some(value))
        && expressions.into_iter().all(|expression| {
            let found = labels.get(expression["key"].as_str().unwrap_or_default());
            let listed =
                |value: &Value| expression["values"].as_array().is_some_and(|list| list.contains(value));
            match expression["operator"].as_str().unwrap_or_default() {
                "In" => found.is_some_and(listed),
                "NotIn" => !found.is_some_and(listed),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_match_labels() {
        let labels = json!({"app": "web", "tier": "front"});
        let matches = |selector: Value| selects(&selector, labels.as_object().unwrap());
        assert!(matches(json!({})) && !matches(Value::Null));
        assert!(matches(json!({"matchLabels": {"app": "web"}})));
        assert!(!matches(json!({"matchLabels": {"app": "web", "x": "y"}})));
        let by = |operator: &str, key: &str, values: &[&str]| {
            matches(json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}))
        };
        assert!(by("In", "app", &["api", "web"]) && !by("In", "other", &["web"]));
        assert!(by("NotIn", "other", &["web"]) && !by("NotIn", "app", &["web"]));
        assert!(by("Exists", "tier", &[]) && by("DoesNotExist", "other", &[]) && !by("Exists", "other", &[]));
    }

    #[test]
    fn the_time_of_a_condition_changes_with_its_status() {
        let mut status = json!({}).as_object().unwrap().clone();
        let condition = |status: &str, reason: &str| json!({"type": "A", "status": status, "reason": reason});
        for (status_text, reason, now, since) in
            [("True", "x", "1", "1"), ("True", "y", "2", "1"), ("False", "y", "3", "3")]
        {
            set_condition(&mut status, condition(status_text, reason), now);
            let stored = &status["conditions"][0];
            assert_eq!((&stored["lastTransitionTime"], &stored["reason"]), (&json!(since), &json!(reason)));
        }
        assert_eq!(status["conditions"].as_array().map(Vec::len), Some(1));
    }
}
