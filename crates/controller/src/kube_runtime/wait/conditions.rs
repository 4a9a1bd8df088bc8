//! Conditions of objects.

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        core::v1::{Pod, Service},
        networking::v1::Ingress,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::Resource;

/// A condition of an object, or of its absence. Functions from `Option<&K>` to `bool` are conditions.
pub trait Condition<K> {
    /// Whether the object meets the condition; `None` if it does not exist.
    fn matches_object(&self, object: Option<&K>) -> bool;

    /// The opposite.
    fn not(self) -> Not<Self>
    where
        Self: Sized,
    {
        Not(self)
    }

    /// Both conditions.
    fn and<Other: Condition<K>>(self, other: Other) -> And<Self, Other>
    where
        Self: Sized,
    {
        And(self, other)
    }

    /// At least one of two conditions.
    fn or<Other: Condition<K>>(self, other: Other) -> Or<Self, Other>
    where
        Self: Sized,
    {
        Or(self, other)
    }
}

impl<K, F: Fn(Option<&K>) -> bool> Condition<K> for F {
    fn matches_object(&self, object: Option<&K>) -> bool {
        self(object)
    }
}

/// See [`Condition::not`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Not<A>(A);

impl<K, A: Condition<K>> Condition<K> for Not<A> {
    fn matches_object(&self, object: Option<&K>) -> bool {
        !self.0.matches_object(object)
    }
}

/// See [`Condition::and`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct And<A, B>(A, B);

impl<K, A: Condition<K>, B: Condition<K>> Condition<K> for And<A, B> {
    fn matches_object(&self, object: Option<&K>) -> bool {
        self.0.matches_object(object) && self.1.matches_object(object)
    }
}

/// See [`Condition::or`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Or<A, B>(A, B);

impl<K, A: Condition<K>, B: Condition<K>> Condition<K> for Or<A, B> {
    fn matches_object(&self, object: Option<&K>) -> bool {
        self.0.matches_object(object) || self.1.matches_object(object)
    }
}

/// The object with this uid does not exist.
#[must_use]
pub fn is_deleted<K: Resource>(uid: &str) -> impl Condition<K> + '_ {
    move |object: Option<&K>| object.is_none_or(|object| object.meta().uid.as_deref() != Some(uid))
}

/// The object exists.
#[must_use]
pub fn is_created<K: Resource>() -> impl Condition<K> {
    |object: Option<&K>| object.is_some()
}

/// The server serves the resource of a CRD.
#[must_use]
pub fn is_crd_established() -> impl Condition<CustomResourceDefinition> {
    |crd: Option<&CustomResourceDefinition>| {
        let conditions = crd.and_then(|crd| crd.status.as_ref()?.conditions.as_ref());
        conditions.into_iter().flatten().any(|is| is.type_ == "Established" && is.status == "True")
    }
}

/// A pod is running.
#[must_use]
pub fn is_pod_running() -> impl Condition<Pod> {
    |pod: Option<&Pod>| pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some("Running")
}

/// A job has completed.
#[must_use]
pub fn is_job_completed() -> impl Condition<Job> {
    |job: Option<&Job>| {
        let conditions = job.and_then(|job| job.status.as_ref()?.conditions.as_ref());
        conditions.into_iter().flatten().any(|is| is.type_ == "Complete" && is.status == "True")
    }
}

/// A deployment has replaced all its pods with the newest ones.
#[must_use]
pub fn is_deployment_completed() -> impl Condition<Deployment> {
    |deployment: Option<&Deployment>| {
        // The types of these fields differ between versions of Kubernetes.
        let status = deployment.map(|deployment| serde_json::to_value(&deployment.status));
        let Some(Ok(status)) = status else { return false };
        status["conditions"].as_array().into_iter().flatten().any(|is| {
            is["type"] == "Progressing" && is["reason"] == "NewReplicaSetAvailable" && is["status"] == "True"
        })
    }
}

/// A service of type `LoadBalancer` has an address. Others meet the condition at once.
#[must_use]
pub fn is_service_loadbalancer_provisioned() -> impl Condition<Service> {
    |service: Option<&Service>| {
        let Some(service) = service else { return false };
        let Some(spec) = &service.spec else { return false };
        if spec.type_.as_deref() != Some("LoadBalancer") {
            return true;
        }
        let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
        let addresses = status.and_then(|status| status.ingress.as_ref());
        addresses.is_some_and(|all| all.iter().all(|one| one.ip.is_some() || one.hostname.is_some()))
    }
}

/// An ingress has an address.
#[must_use]
pub fn is_ingress_provisioned() -> impl Condition<Ingress> {
    |ingress: Option<&Ingress>| {
        let status = ingress.and_then(|ingress| ingress.status.as_ref()?.load_balancer.as_ref());
        let addresses = status.and_then(|status| status.ingress.as_ref());
        addresses.is_some_and(|all| all.iter().all(|one| one.ip.is_some() || one.hostname.is_some()))
    }
}
