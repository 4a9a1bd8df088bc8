//! How each kind differs from the generic object.

use super::Object;
use super::defaults;
use super::field_labels::FieldLabels;
use super::names::NameRule;
use super::validation;
use crate::custom;
use crate::status::FieldError;

/// What an update of the main resource does to `metadata.generation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has none.
    None,
    /// Follows `spec`.
    Spec,
    /// Follows `spec` and the annotations (deployments).
    SpecAndAnnotations,
    /// Follows everything but metadata.
    Content,
}

/// What a write of `/status` may do to metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusMetadata {
    /// Change everything but these.
    ChangedExcept(&'static [&'static str]),
    /// Nothing.
    Kept,
}

/// The rules of one kind.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) names: NameRule,
    pub(crate) fields: FieldLabels,
    pub(crate) generation: Generation,
    /// A finished delete answers with the object; otherwise with a `Status`.
    pub(crate) delete_returns_object: bool,
    /// A PUT to a name that is not there creates it.
    pub(crate) put_creates: bool,
    /// A PUT may leave the version out.
    pub(crate) unconditional_update: bool,
    /// Deletes may give the object time (pods).
    pub(crate) graceful: bool,
    /// Fields only `/status` writes; `metadata` excepted.
    pub(crate) status_fields: &'static [&'static str],
    /// What a write of `/status` may do to metadata.
    pub(crate) status_metadata: StatusMetadata,
    /// A create may bring its status along (nodes register themselves so).
    pub(crate) create_with_status: bool,
    /// Fills what the client left out, on every write.
    pub(crate) default: fn(&mut Object),
    /// Sets what only the server decides, on create.
    pub(crate) prepare: fn(&mut Object),
    /// Carries over what an update may not change silently.
    pub(crate) prepare_update: fn(&mut Object, &Object),
    pub(crate) validate: fn(&Object) -> Vec<FieldError>,
    pub(crate) validate_update: fn(&Object, &Object) -> Vec<FieldError>,
    /// What the writer should hear though nothing is wrong.
    pub(crate) warn: fn(&Object) -> Vec<String>,
}

const GENERIC: Rules = Rules {
    names: NameRule::Subdomain,
    fields: FieldLabels::NONE,
    generation: Generation::None,
    delete_returns_object: false,
    put_creates: false,
    unconditional_update: true,
    graceful: false,
    status_fields: &[],
    status_metadata: StatusMetadata::ChangedExcept(&[]),
    create_with_status: false,
    default: |_| {},
    prepare: |_| {},
    prepare_update: |_, _| {},
    validate: |_| Vec::new(),
    validate_update: |_, _| Vec::new(),
    warn: |_| Vec::new(),
};

/// Kinds with a `status` that only `/status` writes.
const STATUS: Rules = Rules { status_fields: &["status"], ..GENERIC };
/// Kinds with a desired and an observed state, and a generation to tell them apart.
const WORKLOAD: Rules = Rules {
    generation: Generation::Spec,
    status_metadata: StatusMetadata::ChangedExcept(&["labels"]),
    prepare: defaults::empty_status,
    ..STATUS
};
const RBAC: Rules = Rules { names: NameRule::PathSegment, put_creates: true, ..GENERIC };
const VERSIONED: Rules = Rules { unconditional_update: false, ..GENERIC };

const fn table(fields: &'static [(&'static str, &'static str)]) -> FieldLabels {
    FieldLabels { fields, aliases: &[], own_table: true }
}

static POD: Rules = Rules {
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
    graceful: true,
    status_metadata: StatusMetadata::ChangedExcept(&["ownerReferences"]),
    default: defaults::pod,
    prepare: defaults::new_pod,
    validate: validation::pod,
    validate_update: validation::pod_update,
    ..WORKLOAD
};
static NODE: Rules = Rules {
    fields: table(&[("spec.unschedulable", "/spec/unschedulable")]),
    create_with_status: true,
    prepare: defaults::empty_status,
    ..STATUS
};
static NAMESPACE: Rules = Rules {
    names: NameRule::Label,
    fields: table(&[("status.phase", "/status/phase")]),
    delete_returns_object: true,
    default: defaults::namespace,
    prepare: defaults::new_namespace,
    prepare_update: defaults::keep_namespace_finalizers,
    ..STATUS
};
static SECRET: Rules = Rules {
    fields: table(&[("type", "/type")]),
    default: defaults::secret,
    validate: validation::secret,
    validate_update: validation::secret_update,
    ..GENERIC
};
static CONFIG_MAP: Rules =
    Rules { validate: validation::config_map, validate_update: validation::config_map_update, ..GENERIC };
static SERVICE: Rules = Rules {
    names: NameRule::Label1035,
    fields: table(&[("spec.clusterIP", "/spec/clusterIP"), ("spec.type", "/spec/type")]),
    delete_returns_object: true,
    put_creates: true,
    default: defaults::service,
    prepare: defaults::new_service,
    prepare_update: defaults::keep_cluster_ip,
    validate: validation::service,
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
    ("source", "/source/component"),
    ("type", "/type"),
]);

static EVENT: Rules =
    Rules { fields: EVENT_FIELDS, put_creates: true, validate: validation::event, ..GENERIC };
/// The same objects under the names of `events.k8s.io`.
static EVENT_V1: Rules = Rules {
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
    ..GENERIC
};
static REPLICATION_CONTROLLER: Rules = Rules {
    fields: table(&[("status.replicas", "/status/replicas")]),
    default: defaults::replication_controller,
    prepare: defaults::empty_replica_status,
    validate: validation::replication_controller,
    ..WORKLOAD
};
static DEPLOYMENT: Rules = Rules {
    generation: Generation::SpecAndAnnotations,
    default: defaults::deployment,
    validate: validation::deployment,
    validate_update: validation::selector_update,
    ..WORKLOAD
};
static REPLICA_SET: Rules = Rules {
    default: defaults::replica_set,
    prepare: defaults::empty_replica_status,
    validate: validation::replica_set,
    validate_update: validation::selector_update,
    ..WORKLOAD
};
static STATEFUL_SET: Rules = Rules {
    default: defaults::stateful_set,
    prepare: defaults::new_stateful_set,
    validate: validation::stateful_set,
    validate_update: validation::stateful_set_update,
    ..WORKLOAD
};
static DAEMON_SET: Rules = Rules {
    default: defaults::daemon_set,
    prepare: defaults::new_daemon_set,
    validate: validation::daemon_set,
    validate_update: validation::selector_update,
    ..WORKLOAD
};
static JOB: Rules = Rules {
    fields: FieldLabels {
        fields: &[("status.successful", "/status/succeeded")],
        aliases: &[],
        own_table: true,
    },
    default: defaults::job,
    prepare: defaults::new_job,
    validate: validation::job,
    validate_update: validation::job_update,
    ..WORKLOAD
};
static CRON_JOB: Rules = Rules { default: defaults::cron_job, validate: validation::cron_job, ..WORKLOAD };
static LEASE: Rules = Rules { put_creates: true, ..VERSIONED };
static CSR: Rules = Rules { fields: table(&[("spec.signerName", "/spec/signerName")]), ..STATUS };
static RESOURCE_SLICE: Rules = Rules {
    fields: table(&[("spec.nodeName", "/spec/nodeName"), ("spec.driver", "/spec/driver")]),
    delete_returns_object: true,
    ..GENERIC
};
static RETURNS_OBJECT: Rules = Rules { delete_returns_object: true, ..GENERIC };
static CLAIM: Rules =
    Rules { delete_returns_object: true, default: defaults::claim, prepare: defaults::new_claim, ..STATUS };
static VOLUME: Rules =
    Rules { delete_returns_object: true, default: defaults::volume, prepare: defaults::new_volume, ..STATUS };
static QUOTA: Rules = Rules { delete_returns_object: true, prepare: defaults::empty_status, ..STATUS };
static ATTACHMENT: Rules = Rules { delete_returns_object: true, unconditional_update: false, ..STATUS };
static STORAGE_VERSIONED: Rules = Rules { delete_returns_object: true, ..VERSIONED };
static CSI_DRIVER: Rules = Rules { generation: Generation::Spec, ..STORAGE_VERSIONED };
static PUT_CREATES: Rules = Rules { put_creates: true, ..GENERIC };
static RUNTIME_CLASS: Rules = Rules { put_creates: true, ..VERSIONED };
static SLICE: Rules = Rules { generation: Generation::Content, ..GENERIC };
static PRIORITY_CLASS: Rules = Rules { generation: Generation::Content, ..GENERIC };
static ADMISSION: Rules = Rules { generation: Generation::Content, ..VERSIONED };
static BUDGET: Rules = Rules { unconditional_update: false, ..WORKLOAD };
static POLICY: Rules = Rules { generation: Generation::Spec, ..GENERIC };
static STATUS_ONLY: Rules = STATUS;
static WITH_GENERATION: Rules = WORKLOAD;
static RBAC_KINDS: Rules = RBAC;
static VERSIONED_KINDS: Rules = VERSIONED;
static PLAIN: Rules = GENERIC;

static DEFINITION: Rules = Rules {
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
    warn: custom::warn_of_definition,
    ..STATUS
};
/// Kinds that a definition made.
pub(crate) static CUSTOM: Rules = CUSTOM_BASE;
/// The same with `/status`.
pub(crate) static CUSTOM_WITH_STATUS: Rules = Rules { status_fields: &["status"], ..CUSTOM_BASE };
const CUSTOM_BASE: Rules = Rules {
    fields: FieldLabels::CUSTOM,
    generation: Generation::Content,
    status_metadata: StatusMetadata::Kept,
    ..VERSIONED
};

/// The rules of a built-in kind.
pub(super) fn rules_for(group: &str, kind: &str) -> &'static Rules {
    match (group, kind) {
        ("", "Pod") => &POD,
        ("", "Node") => &NODE,
        ("", "Namespace") => &NAMESPACE,
        ("", "Secret") => &SECRET,
        ("", "ConfigMap") => &CONFIG_MAP,
        ("", "Service") => &SERVICE,
        ("", "Event") => &EVENT,
        ("events.k8s.io", "Event") => &EVENT_V1,
        ("", "ReplicationController") => &REPLICATION_CONTROLLER,
        ("", "PersistentVolumeClaim") => &CLAIM,
        ("", "PersistentVolume") => &VOLUME,
        ("", "ResourceQuota") => &QUOTA,
        ("", "ServiceAccount" | "PodTemplate") => &RETURNS_OBJECT,
        ("", "Endpoints" | "LimitRange") => &PUT_CREATES,
        ("apps", "Deployment") => &DEPLOYMENT,
        ("apps", "ReplicaSet") => &REPLICA_SET,
        ("apps", "StatefulSet") => &STATEFUL_SET,
        ("apps", "DaemonSet") => &DAEMON_SET,
        ("batch", "Job") => &JOB,
        ("batch", "CronJob") => &CRON_JOB,
        ("coordination.k8s.io", "Lease") => &LEASE,
        ("certificates.k8s.io", "CertificateSigningRequest") => &CSR,
        ("resource.k8s.io", "ResourceSlice") => &RESOURCE_SLICE,
        ("resource.k8s.io", _) => &RETURNS_OBJECT,
        ("apiextensions.k8s.io", _) => &DEFINITION,
        ("rbac.authorization.k8s.io", _) => &RBAC_KINDS,
        ("storage.k8s.io", "VolumeAttachment") => &ATTACHMENT,
        ("storage.k8s.io", "CSIDriver") => &CSI_DRIVER,
        ("storage.k8s.io", "CSINode") => &STORAGE_VERSIONED,
        ("storage.k8s.io", "CSIStorageCapacity") => &VERSIONED_KINDS,
        ("storage.k8s.io", _) => &RETURNS_OBJECT,
        ("node.k8s.io", "RuntimeClass") => &RUNTIME_CLASS,
        ("discovery.k8s.io", "EndpointSlice") => &SLICE,
        ("scheduling.k8s.io", "PriorityClass") => &PRIORITY_CLASS,
        ("admissionregistration.k8s.io", _) => &ADMISSION,
        ("policy", "PodDisruptionBudget") => &BUDGET,
        ("networking.k8s.io", "NetworkPolicy") => &POLICY,
        ("networking.k8s.io", "Ingress") | ("flowcontrol.apiserver.k8s.io", _) => &WITH_GENERATION,
        ("networking.k8s.io", "ServiceCIDR") | ("autoscaling", _) => &STATUS_ONLY,
        _ => &PLAIN,
    }
}
