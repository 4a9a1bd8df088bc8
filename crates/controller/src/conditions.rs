//! Conditions in the status of an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// The conditions of a status, by type.
///
/// ```
/// use k8s_openapi::{apimachinery::pkg::apis::meta::v1::{Condition, Time}, jiff::Timestamp};
/// use kube_informer_controller::Conditions;
///
/// let ready = |status: &str, second| Condition {
///     type_: "Ready".into(),
///     status: status.into(),
///     reason: "Available".into(),
///     message: String::new(),
///     observed_generation: Some(1),
///     last_transition_time: Time(Timestamp::from_second(second).expect("a time")),
/// };
/// let mut conditions = vec![ready("True", 100)];
/// assert!(!conditions.set(ready("True", 200)), "the time alone is no change");
/// assert!(conditions.set(ready("False", 300)) && !conditions.is_true("Ready"));
/// ```
pub trait Conditions {
    /// Adds a condition, or replaces the one of its type. Returns whether that changed anything. The time of the transition
    /// changes only with the status of the condition, so that setting the same condition again changes nothing.
    fn set(&mut self, condition: Condition) -> bool;

    /// The condition of a type.
    fn of_type(&self, condition_type: &str) -> Option<&Condition>;

    /// Whether there is a condition of this type with the status `True`.
    fn is_true(&self, condition_type: &str) -> bool {
        self.of_type(condition_type).is_some_and(|condition| condition.status == "True")
    }
}

impl Conditions for Vec<Condition> {
    fn set(&mut self, mut condition: Condition) -> bool {
        let Some(known) = self.iter_mut().find(|known| known.type_ == condition.type_) else {
            self.push(condition);
            return true;
        };
        if known.status == condition.status {
            condition.last_transition_time = known.last_transition_time.clone();
        }
        let changed = *known != condition;
        *known = condition;
        changed
    }

    fn of_type(&self, condition_type: &str) -> Option<&Condition> {
        self.iter().find(|condition| condition.type_ == condition_type)
    }
}

impl Conditions for Option<Vec<Condition>> {
    fn set(&mut self, condition: Condition) -> bool {
        self.get_or_insert_default().set(condition)
    }

    fn of_type(&self, condition_type: &str) -> Option<&Condition> {
        self.as_ref().and_then(|conditions| conditions.of_type(condition_type))
    }
}
