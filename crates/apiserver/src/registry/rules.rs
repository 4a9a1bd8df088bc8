//! The rules in which each resource differs from the generic object.

use super::Object;
use super::defaults;
use super::field_labels::FieldLabels;
use super::names::NameRule;
use super::validation;
use crate::authentication::User;
use crate::custom;
use crate::status::FieldErrors;

/// The changes of the main resource that increase `metadata.generation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// No generation.
    None,
    /// Follows `spec`.
    Spec,
    /// Follows `spec` and the annotations (deployments).
    SpecAndAnnotations,
    /// Follows everything but metadata.
    Content,
}

/// The metadata that a write of `/status` may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusMetadata {
    /// All but these.
    ChangedExcept(&'static [&'static str]),
    /// None.
    Kept,
}

/// The rules of one resource.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) names: NameRule,
    pub(crate) fields: FieldLabels,
    pub(crate) generation: Generation,
    /// The response to a completed delete is the object; otherwise a `Status`.
    pub(crate) delete_returns_object: bool,
    /// A PUT creates an object that does not exist.
    pub(crate) put_creates: bool,
    /// A PUT may omit the resource version.
    pub(crate) unconditional_update: bool,
    /// Dependents are orphaned unless the delete has a policy, for compatibility with old clients.
    pub(crate) orphans_dependents: bool,
    /// Fields that only `/status` writes.
    pub(crate) status_fields: &'static [&'static str],
    /// The metadata that a write of `/status` may change.
    pub(crate) status_metadata: StatusMetadata,
    /// A create may contain the status (kubelets register nodes in this way).
    pub(crate) create_with_status: bool,
    /// Sets defaults, on every write.
    pub(crate) default: fn(&mut Object),
    /// Sets fields that only the server sets, on create.
    pub(crate) prepare: fn(&mut Object),
    /// Copies fields that an update must not change.
    pub(crate) prepare_update: fn(&mut Object, &Object),
    pub(crate) validate: fn(&Object) -> FieldErrors,
    /// The errors that only a new object can have.
    pub(crate) validate_new: fn(&Object) -> FieldErrors,
    pub(crate) validate_update: fn(&Object, &Object) -> FieldErrors,
    /// Completes the part that a write of `/status` or `/approval` changed. The text is the time of the write.
    pub(crate) prepare_status: fn(&mut Object, &Object, &str),
    /// Records the user who creates an object.
    pub(crate) record_creator: fn(&mut Object, &User),
    /// The warning of a delete without a propagation policy.
    pub(crate) delete_warning: Option<&'static str>,
    /// The warning of every response.
    pub(crate) deprecation: Option<&'static str>,
    /// The warnings about a valid object that is new, or that replaces another one.
    pub(crate) warn: fn(&Object, Option<&Object>) -> Vec<String>,
}

const GENERIC: Rules = Rules {
    names: NameRule::Subdomain,
    fields: FieldLabels::NONE,
    generation: Generation::None,
    delete_returns_object: false,
    put_creates: false,
    unconditional_update: true,
    orphans_dependents: false,
    status_fields: &[],
    status_metadata: StatusMetadata::ChangedExcept(&[]),
    create_with_status: false,
    default: |_| {},
    prepare: |_| {},
    prepare_update: |_, _| {},
    validate: |_| FieldErrors::new(),
    validate_new: |_| FieldErrors::new(),
    validate_update: |_, _| FieldErrors::new(),
    prepare_status: |_, _, _| {},
    record_creator: |_, _| {},
    delete_warning: None,
    deprecation: None,
    warn: |_, _| Vec::new(),
};

/// Resources with a `status` that only `/status` writes.
const STATUS: Rules = Rules { status_fields: &["status"], ..GENERIC };
/// Resources with a spec, a status and a generation.
const WORKLOAD: Rules = Rules {
    generation: Generation::Spec,
    status_metadata: StatusMetadata::ChangedExcept(&["labels"]),
    ..STATUS
};
const RBAC: Rules = Rules { names: NameRule::PathSegment, put_creates: true, ..GENERIC };
const VERSIONED: Rules = Rules { unconditional_update: false, ..GENERIC };

const fn table(fields: &'static [(&'static str, &'static str)]) -> FieldLabels {
    FieldLabels { fields, aliases: &[], own_table: true }
}

pub(super) static POD: Rules = Rules {
    fields: FieldLabels {
        fields: &[
            ("spec.nodeName", "/spec/nodeName"),
            ("spec.restartPolicy", "/spec/restartPolicy"),
            ("spec.schedulerName", "/spec/schedulerName"),
            ("spec.serviceAccountName", "/spec/serviceAccountName"),
            ("spec.hostNetwork", "/spec/hostNetwork"),
            ("status.phase", "/status/phase"),
            ("status.podIP", "/status/podIP"),
            ("status.podIPs", "/status/podIPs"),
            ("status.nominatedNodeName", "/status/nominatedNodeName"),
        ],
        aliases: &[("spec.host", "spec.nodeName")],
        own_table: true,
    },
    delete_returns_object: true,
    status_metadata: StatusMetadata::ChangedExcept(&["ownerReferences"]),
    default: defaults::pod,
    prepare: defaults::new_pod,
    validate: validation::pod,
    validate_update: validation::pod_update,
    ..WORKLOAD
};
pub(super) static NODE: Rules = Rules {
    fields: table(&[("spec.unschedulable", "/spec/unschedulable")]),
    create_with_status: true,
    validate: validation::node,
    ..STATUS
};
pub(super) static NAMESPACE: Rules = Rules {
    names: NameRule::Label,
    fields: table(&[("status.phase", "/status/phase")]),
    delete_returns_object: true,
    default: defaults::namespace,
    prepare: defaults::new_namespace,
    prepare_update: defaults::keep_namespace_finalizers,
    ..STATUS
};
pub(super) static SECRET: Rules = Rules {
    fields: table(&[("type", "/type")]),
    default: defaults::secret,
    validate: validation::secret,
    validate_update: validation::secret_update,
    ..GENERIC
};
pub(super) static CONFIG_MAP: Rules =
    Rules { validate: validation::config_map, validate_update: validation::config_map_update, ..GENERIC };
pub(super) static SERVICE: Rules = Rules {
    names: NameRule::Label,
    fields: table(&[("spec.clusterIP", "/spec/clusterIP"), ("spec.type", "/spec/type")]),
    delete_returns_object: true,
    put_creates: true,
    default: defaults::service,
    prepare: defaults::new_service,
    prepare_update: defaults::settle_service,
    validate: validation::service,
    validate_update: validation::service_update,
    ..STATUS
};
const EVENT_FIELDS: FieldLabels = table(&[
    ("involvedObject.kind", "/involvedObject/kind"),
    ("involvedObject.namespace", "/involvedObject/namespace"),
    ("involvedObject.name", "/involvedObject/name"),
    ("involvedObject.uid", "/involvedObject/uid"),
    ("involvedObject.apiVersion", "/involvedObject/apiVersion"),
    ("involvedObject.resourceVersion", "/involvedObject/resourceVersion"),
    ("involvedObject.fieldPath", "/involvedObject/fieldPath"),
    ("reason", "/reason"),
    ("reportingComponent", "/reportingComponent"),
    ("source", "/source/component|/reportingComponent"),
    ("type", "/type"),
]);

pub(super) static EVENT: Rules =
    Rules { fields: EVENT_FIELDS, put_creates: true, validate: validation::event, ..GENERIC };
/// The same objects with the field names of `events.k8s.io`.
pub(super) static EVENT_V1: Rules = Rules {
    fields: FieldLabels {
        aliases: &[
            ("regarding.kind", "involvedObject.kind"),
            ("regarding.namespace", "involvedObject.namespace"),
            ("regarding.name", "involvedObject.name"),
            ("regarding.uid", "involvedObject.uid"),
            ("regarding.apiVersion", "involvedObject.apiVersion"),
            ("regarding.resourceVersion", "involvedObject.resourceVersion"),
            ("regarding.fieldPath", "involvedObject.fieldPath"),
            ("reportingController", "reportingComponent"),
        ],
        ..EVENT_FIELDS
    },
    put_creates: true,
    validate: validation::event_v1,
    validate_new: validation::new_event_v1,
    validate_update: validation::event_v1_update,
    ..GENERIC
};
pub(super) static REPLICATION_CONTROLLER: Rules = Rules {
    fields: table(&[("status.replicas", "/status/replicas")]),
    orphans_dependents: true,
    default: defaults::replication_controller,
    validate: validation::replication_controller,
    ..WORKLOAD
};
pub(super) static DEPLOYMENT: Rules = Rules {
    generation: Generation::SpecAndAnnotations,
    default: defaults::deployment,
    validate: validation::deployment,
    validate_update: validation::selector_update,
    ..WORKLOAD
};
pub(super) static REPLICA_SET: Rules = Rules {
    default: defaults::replica_set,
    validate: validation::replica_set,
    validate_update: validation::selector_update,
    ..WORKLOAD
};
pub(super) static STATEFUL_SET: Rules = Rules {
    default: defaults::stateful_set,
    validate: validation::stateful_set,
    validate_update: validation::stateful_set_update,
    ..WORKLOAD
};
pub(super) static DAEMON_SET: Rules = Rules {
    default: defaults::daemon_set,
    prepare: defaults::new_daemon_set,
    prepare_update: defaults::keep_template_generation,
    validate: validation::daemon_set,
    validate_update: validation::selector_update,
    ..WORKLOAD
};
pub(super) static JOB: Rules = Rules {
    fields: FieldLabels {
        fields: &[("status.successful", "/status/succeeded")],
        aliases: &[],
        own_table: true,
    },
    orphans_dependents: true,
    delete_warning: Some(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set \
         propagationPolicy=Orphan to suppress this warning",
    ),
    default: defaults::job,
    prepare: defaults::new_job,
    validate: validation::job,
    validate_update: validation::job_update,
    ..WORKLOAD
};
pub(super) static CRON_JOB: Rules =
    Rules { default: defaults::cron_job, validate: validation::cron_job, ..WORKLOAD };
pub(super) static LEASE: Rules = Rules { put_creates: true, validate: validation::lease, ..VERSIONED };
pub(super) static SIGNING_REQUEST: Rules = Rules {
    fields: table(&[("spec.signerName", "/spec/signerName")]),
    prepare_status: defaults::signing_request_conditions,
    prepare_update: defaults::keep_spec,
    record_creator: defaults::signing_request_creator,
    ..STATUS
};
pub(super) static RESOURCE_CLAIM: Rules =
    Rules { status_fields: &["status"], default: defaults::resource_claim, ..RETURNS_OBJECT };
pub(super) static RESOURCE_CLAIM_TEMPLATE: Rules =
    Rules { default: defaults::resource_claim_template, ..RETURNS_OBJECT };
pub(super) static IP_ADDRESS: Rules = Rules { names: NameRule::PathSegment, ..GENERIC };
pub(super) static RESOURCE_SLICE: Rules = Rules {
    fields: table(&[("spec.nodeName", "/spec/nodeName"), ("spec.driver", "/spec/driver")]),
    delete_returns_object: true,
    ..GENERIC
};
pub(super) static RETURNS_OBJECT: Rules = Rules { delete_returns_object: true, ..GENERIC };
pub(super) static SERVICE_ACCOUNT: Rules =
    Rules { warn: validation::service_account_warnings, ..RETURNS_OBJECT };
pub(super) static CLAIM: Rules = Rules {
    delete_returns_object: true,
    default: defaults::claim,
    prepare: defaults::new_claim,
    validate: validation::claim,
    validate_update: validation::claim_update,
    ..STATUS
};
pub(super) static VOLUME: Rules = Rules {
    delete_returns_object: true,
    default: defaults::volume,
    prepare: defaults::new_volume,
    validate: validation::volume,
    ..STATUS
};
pub(super) static QUOTA: Rules = Rules { delete_returns_object: true, validate: validation::quota, ..STATUS };
pub(super) static ATTACHMENT: Rules = Rules {
    delete_returns_object: true,
    unconditional_update: false,
    validate: validation::attachment,
    ..STATUS
};
const STORAGE_VERSIONED: Rules = Rules { delete_returns_object: true, ..VERSIONED };
pub(super) static CSI_DRIVER: Rules = Rules {
    generation: Generation::Spec,
    default: defaults::csi_driver,
    validate: validation::csi_driver,
    ..STORAGE_VERSIONED
};
pub(super) static CSI_NODE: Rules = Rules { validate: validation::csi_node, ..STORAGE_VERSIONED };
pub(super) static STORAGE_CLASS: Rules = Rules {
    default: defaults::storage_class,
    validate: validation::storage_class,
    validate_update: validation::storage_class_update,
    ..RETURNS_OBJECT
};
pub(super) static POD_TEMPLATE: Rules = Rules {
    generation: Generation::Content,
    default: defaults::pod_template,
    validate: validation::pod_template,
    ..RETURNS_OBJECT
};
pub(super) static ENDPOINTS: Rules = Rules {
    put_creates: true,
    default: defaults::endpoints,
    validate: validation::endpoints,
    deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    ..GENERIC
};
pub(super) static LIMIT_RANGE: Rules =
    Rules { put_creates: true, default: defaults::limit_range, validate: validation::limit_range, ..GENERIC };
pub(super) static INGRESS_CLASS: Rules = Rules {
    generation: Generation::Spec,
    default: defaults::ingress_class,
    validate: validation::ingress_class,
    ..GENERIC
};
pub(super) static INGRESS: Rules = Rules { validate: validation::ingress, ..WORKLOAD };
pub(super) static AUTOSCALER: Rules =
    Rules { default: defaults::autoscaler, validate: validation::autoscaler, ..STATUS };
pub(super) static AUTOSCALER_V1: Rules =
    Rules { default: defaults::autoscaler_v1, validate: validation::autoscaler_v1, ..STATUS };
pub(super) static ROLE: Rules = Rules { validate: validation::role, ..RBAC };
pub(super) static CLUSTER_ROLE: Rules = Rules { validate: validation::cluster_role, ..RBAC };
pub(super) static ROLE_BINDING: Rules = Rules {
    default: defaults::binding,
    validate: validation::role_binding,
    validate_update: validation::role_reference_kept,
    ..RBAC
};
pub(super) static CLUSTER_ROLE_BINDING: Rules =
    Rules { validate: validation::cluster_role_binding, ..ROLE_BINDING };
pub(super) static REVISION: Rules = Rules { validate: validation::revision, ..GENERIC };
pub(super) static RUNTIME_CLASS: Rules = Rules { put_creates: true, ..VERSIONED };
pub(super) static ENDPOINT_SLICE: Rules = Rules {
    generation: Generation::Content,
    default: defaults::endpoint_slice,
    validate: validation::endpoint_slice,
    validate_update: validation::endpoint_slice_update,
    ..GENERIC
};
pub(super) static PRIORITY_CLASS: Rules = Rules {
    generation: Generation::Content,
    default: defaults::priority_class,
    validate: validation::priority_class,
    validate_update: validation::priority_class_update,
    ..GENERIC
};
pub(super) static ADMISSION: Rules =
    Rules { generation: Generation::Content, default: defaults::admission_policy, ..VERSIONED };
/// Flow schemas and priority levels.
pub(super) static FLOW_CONTROL: Rules = WORKLOAD;
pub(super) static VALIDATING_POLICY: Rules = Rules { status_fields: &["status"], ..ADMISSION };
pub(super) static WEBHOOKS: Rules =
    Rules { default: defaults::webhooks, validate: validation::webhooks, ..ADMISSION };
pub(super) static API_SERVICE: Rules = Rules {
    names: NameRule::PathSegment,
    unconditional_update: false,
    default: defaults::api_service,
    validate: validation::api_service,
    ..STATUS
};
pub(super) static COMPONENT_STATUS: Rules =
    Rules { deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"), ..GENERIC };
pub(super) static BUDGET: Rules =
    Rules { unconditional_update: false, validate: validation::budget, ..WORKLOAD };
pub(super) static NETWORK_POLICY: Rules = Rules {
    generation: Generation::Spec,
    default: defaults::network_policy,
    validate: validation::network_policy,
    ..GENERIC
};
pub(super) static STATUS_ONLY: Rules = STATUS;
pub(super) static VERSION_REQUIRED: Rules = VERSIONED;
pub(super) static PLAIN: Rules = GENERIC;

pub(super) static CUSTOM_RESOURCE_DEFINITION: Rules = Rules {
    generation: Generation::Spec,
    unconditional_update: false,
    status_metadata: StatusMetadata::ChangedExcept(&[
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    ]),
    default: custom::default_definition,
    prepare: custom::prepare_definition,
    prepare_update: custom::prepare_definition_update,
    validate: custom::validate_definition,
    validate_update: custom::validate_definition_update,
    warn: custom::definition_warnings,
    ..STATUS
};
/// Custom resources.
pub(crate) static CUSTOM: Rules = CUSTOM_BASE;
/// The same with `/status`.
pub(crate) static CUSTOM_WITH_STATUS: Rules = Rules { status_fields: &["status"], ..CUSTOM_BASE };
const CUSTOM_BASE: Rules = Rules {
    fields: FieldLabels::CUSTOM,
    generation: Generation::Content,
    status_metadata: StatusMetadata::Kept,
    ..VERSIONED
};
