//! The chain `factory.core().v1().pods()`, as client-go users write it: groups, versions and kinds built into
//! Kubernetes.

use super::{InformerFactory, InformerFor};
use k8s_openapi::api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration;

/// The type of a kind in a module.
macro_rules! at {
    ([$($module:ident)::*] $Kind:ident) => { $($module::)* $Kind };
}

/// For each API group: a method of the factory, a type for the group, and a type for each of its versions with
/// a method for each kind.
macro_rules! groups {
    ($( $group:ident $Group:ident { $( $version:ident $Version:ident in $path:tt {
        $( $plural:ident: $Kind:ident, )*
    } )* } )*) => {
        impl InformerFactory {
            $(
                #[doc = concat!("The `", stringify!($group), "` group.")]
                pub fn $group(&self) -> $Group {
                    $Group(self.clone())
                }
            )*
        }
        $(
            #[doc = concat!("The `", stringify!($group), "` group of a factory.")]
            #[derive(Debug)]
            pub struct $Group(InformerFactory);

            impl $Group {
                $(
                    #[doc = concat!("Version `", stringify!($version), "`.")]
                    pub fn $version(&self) -> $Version {
                        $Version(self.0.clone())
                    }
                )*
            }
            $(
                #[doc = concat!("Version `", stringify!($version), "` of the `", stringify!($group), "` group.")]
                #[derive(Debug)]
                pub struct $Version(InformerFactory);

                impl $Version {
                    $(
                        #[doc = concat!("`", stringify!($Kind), "` objects.")]
                        pub fn $plural(&self) -> InformerFor<at!($path $Kind)> {
                            InformerFor::new(&self.0)
                        }
                    )*
                }
            )*
        )*
    };
}

groups! {
    core CoreGroup { v1 CoreV1 in [api::core::v1] {
        config_maps: ConfigMap,
        endpoints: Endpoints,
        events: Event,
        limit_ranges: LimitRange,
        namespaces: Namespace,
        nodes: Node,
        persistent_volumes: PersistentVolume,
        persistent_volume_claims: PersistentVolumeClaim,
        pods: Pod,
        pod_templates: PodTemplate,
        replication_controllers: ReplicationController,
        resource_quotas: ResourceQuota,
        secrets: Secret,
        services: Service,
        service_accounts: ServiceAccount,
    } }
    admission_registration AdmissionRegistrationGroup { v1 AdmissionRegistrationV1 in [api::admissionregistration::v1] {
        mutating_webhook_configurations: MutatingWebhookConfiguration,
        validating_admission_policies: ValidatingAdmissionPolicy,
        validating_admission_policy_bindings: ValidatingAdmissionPolicyBinding,
        validating_webhook_configurations: ValidatingWebhookConfiguration,
    } }
    api_extensions ApiExtensionsGroup { v1 ApiExtensionsV1 in [apiextensions::v1] {
        custom_resource_definitions: CustomResourceDefinition,
    } }
    api_registration ApiRegistrationGroup { v1 ApiRegistrationV1 in [apiregistration::v1] {
        api_services: APIService,
    } }
    apps AppsGroup { v1 AppsV1 in [api::apps::v1] {
        controller_revisions: ControllerRevision,
        daemon_sets: DaemonSet,
        deployments: Deployment,
        replica_sets: ReplicaSet,
        stateful_sets: StatefulSet,
    } }
    autoscaling AutoscalingGroup {
        v1 AutoscalingV1 in [api::autoscaling::v1] { horizontal_pod_autoscalers: HorizontalPodAutoscaler, }
        v2 AutoscalingV2 in [api::autoscaling::v2] { horizontal_pod_autoscalers: HorizontalPodAutoscaler, }
    }
    batch BatchGroup { v1 BatchV1 in [api::batch::v1] {
        cron_jobs: CronJob,
        jobs: Job,
    } }
    certificates CertificatesGroup { v1 CertificatesV1 in [api::certificates::v1] {
        certificate_signing_requests: CertificateSigningRequest,
    } }
    coordination CoordinationGroup { v1 CoordinationV1 in [api::coordination::v1] { leases: Lease, } }
    discovery DiscoveryGroup { v1 DiscoveryV1 in [api::discovery::v1] { endpoint_slices: EndpointSlice, } }
    events EventsGroup { v1 EventsV1 in [api::events::v1] { events: Event, } }
    flow_control FlowControlGroup { v1 FlowControlV1 in [api::flowcontrol::v1] {
        flow_schemas: FlowSchema,
        priority_level_configurations: PriorityLevelConfiguration,
    } }
    networking NetworkingGroup { v1 NetworkingV1 in [api::networking::v1] {
        ingresses: Ingress,
        ingress_classes: IngressClass,
        ip_addresses: IPAddress,
        network_policies: NetworkPolicy,
        service_cidrs: ServiceCIDR,
    } }
    node NodeGroup { v1 NodeV1 in [api::node::v1] { runtime_classes: RuntimeClass, } }
    policy PolicyGroup { v1 PolicyV1 in [api::policy::v1] { pod_disruption_budgets: PodDisruptionBudget, } }
    rbac RbacGroup { v1 RbacV1 in [api::rbac::v1] {
        cluster_roles: ClusterRole,
        cluster_role_bindings: ClusterRoleBinding,
        roles: Role,
        role_bindings: RoleBinding,
    } }
    scheduling SchedulingGroup { v1 SchedulingV1 in [api::scheduling::v1] { priority_classes: PriorityClass, } }
    storage StorageGroup { v1 StorageV1 in [api::storage::v1] {
        csi_drivers: CSIDriver,
        csi_nodes: CSINode,
        csi_storage_capacities: CSIStorageCapacity,
        storage_classes: StorageClass,
        volume_attachments: VolumeAttachment,
    } }
}
