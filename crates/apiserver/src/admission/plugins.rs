//! The list of admission plugins, and which of them are enabled.

use thiserror::Error;

/// An admission plugin of this server. Names and meaning are those of kube-apiserver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plugin {
    /// Objects are created in namespaces that exist and are not being deleted; some namespaces cannot be deleted.
    NamespaceLifecycle,
    /// Limit ranges give containers their default resources, and bound those of containers, pods and claims.
    LimitRanger,
    /// A pod runs as a service account that exists, and gets its token. A controller creates the account `default` of each namespace.
    ServiceAccount,
    /// A new node has the taint of one that is not ready.
    TaintNodesByCondition,
    /// The priority of a pod is that of its priority class.
    Priority,
    /// Pods tolerate nodes that are not ready or not reachable for five minutes.
    DefaultTolerationSeconds,
    /// Claims that name no storage class get the default one.
    DefaultStorageClass,
    /// Claims and volumes that are in use are not deleted. A controller removes the finalizer of others.
    StorageObjectInUseProtection,
    /// Claims grow only if they are bound and their storage class allows it.
    PersistentVolumeClaimResize,
    /// A pod has the overhead and the node selector of its runtime class.
    RuntimeClass,
    /// Ingresses that name no class get the default one.
    DefaultIngressClass,
    /// Quotas bound the number of objects in a namespace, and their resources.
    ResourceQuota,
}

/// All plugins, in the order in which they run.
const PLUGINS: [(Plugin, &str); 12] = [
    (Plugin::NamespaceLifecycle, "NamespaceLifecycle"),
    (Plugin::LimitRanger, "LimitRanger"),
    (Plugin::ServiceAccount, "ServiceAccount"),
    (Plugin::TaintNodesByCondition, "TaintNodesByCondition"),
    (Plugin::Priority, "Priority"),
    (Plugin::DefaultTolerationSeconds, "DefaultTolerationSeconds"),
    (Plugin::DefaultStorageClass, "DefaultStorageClass"),
    (Plugin::StorageObjectInUseProtection, "StorageObjectInUseProtection"),
    (Plugin::PersistentVolumeClaimResize, "PersistentVolumeClaimResize"),
    (Plugin::RuntimeClass, "RuntimeClass"),
    (Plugin::DefaultIngressClass, "DefaultIngressClass"),
    (Plugin::ResourceQuota, "ResourceQuota"),
];

/// The other plugins of kube-apiserver 1.36. They can be disabled, which has no effect, and not enabled.
const NOT_IMPLEMENTED: [&str; 29] = [
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "JobValidation",
    "LimitPodHardAntiAffinityTopology",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NodeDeclaredFeatureValidator",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PodGroupProtection",
    "PodGroupWorkloadExists",
    "PodNodeSelector",
    "PodResizeValidator",
    "PodSecurity",
    "PodTolerationRestriction",
    "PodTopologyLabels",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// The error of a list of admission plugins.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AdmissionPluginError {
    /// No plugin has this name.
    #[error("unknown admission plugin {name:?}: this server has {}", implemented())]
    Unknown {
        /// The name.
        name: String,
    },
    /// kube-apiserver has this plugin, and this server does not.
    #[error("admission plugin {name} is not implemented: this server has {}", implemented())]
    NotImplemented {
        /// The name.
        name: String,
    },
    /// The plugin is in both lists.
    #[error("admission plugin {name} is both enabled and disabled: leave it out of one of the lists")]
    Contradictory {
        /// The name.
        name: String,
    },
}

/// The controllers that plugins need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunningControllers {
    /// This server computes the usage of quotas. Without it no object could be created in a namespace with a quota.
    pub(crate) quota_usage: bool,
    /// kube-controller-manager creates service accounts, and removes finalizers that protect claims and volumes.
    pub(crate) controller_manager: bool,
}

/// The enabled plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plugins([bool; PLUGINS.len()]);

impl Plugins {
    /// Returns the plugins that are on by default, with these changes. A plugin whose controller does not run is off by default.
    pub(crate) fn new(
        enable: &[String],
        disable: &[String],
        running: RunningControllers,
    ) -> Result<Self, AdmissionPluginError> {
        let mut plugins = Self([true; PLUGINS.len()]);
        plugins.set(Plugin::ResourceQuota, running.quota_usage);
        plugins.set(Plugin::ServiceAccount, running.controller_manager);
        plugins.set(Plugin::StorageObjectInUseProtection, running.controller_manager);
        for name in disable {
            match find(name) {
                Some(_) if enable.contains(name) => {
                    return Err(AdmissionPluginError::Contradictory { name: name.clone() });
                }
                Some(plugin) => plugins.set(plugin, false),
                None if NOT_IMPLEMENTED.contains(&name.as_str()) => {}
                None => return Err(AdmissionPluginError::Unknown { name: name.clone() }),
            }
        }
        for name in enable {
            match find(name) {
                Some(plugin) => plugins.set(plugin, true),
                None if NOT_IMPLEMENTED.contains(&name.as_str()) => {
                    return Err(AdmissionPluginError::NotImplemented { name: name.clone() });
                }
                None => return Err(AdmissionPluginError::Unknown { name: name.clone() }),
            }
        }
        Ok(plugins)
    }

    pub(crate) fn has(&self, plugin: Plugin) -> bool {
        self.0[place(plugin)]
    }

    fn set(&mut self, plugin: Plugin, enabled: bool) {
        self.0[place(plugin)] = enabled;
    }
}

fn place(plugin: Plugin) -> usize {
    PLUGINS.iter().position(|(known, _)| *known == plugin).unwrap_or_default()
}

fn find(name: &str) -> Option<Plugin> {
    PLUGINS.iter().find(|(_, known)| *known == name).map(|(plugin, _)| *plugin)
}

fn implemented() -> String {
    PLUGINS.map(|(_, name)| name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugins(enable: &[&str], disable: &[&str]) -> Result<Plugins, String> {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Plugins::new(&names(enable), &names(disable), RunningControllers::default())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn plugins_are_switched_by_name() {
        let default = plugins(&[], &[]).unwrap();
        assert!(default.has(Plugin::LimitRanger) && !default.has(Plugin::ResourceQuota));
        let changed = plugins(&["ResourceQuota"], &["LimitRanger", "PodSecurity"]).unwrap();
        assert!(!changed.has(Plugin::LimitRanger) && changed.has(Plugin::ResourceQuota));
    }

    #[test]
    fn plugins_that_need_a_controller_are_off_without_it() {
        let on = |quota_usage, controller_manager| {
            let running = RunningControllers { quota_usage, controller_manager };
            let plugins = Plugins::new(&[], &[], running).unwrap();
            [Plugin::ResourceQuota, Plugin::ServiceAccount, Plugin::StorageObjectInUseProtection]
                .map(|plugin| plugins.has(plugin))
        };
        assert_eq!(on(false, false), [false, false, false]);
        assert_eq!(on(true, false), [true, false, false]);
        assert_eq!(on(false, true), [false, true, true]);
    }

    #[test]
    fn other_names_are_rejected_with_the_list() {
        let list = "this server has NamespaceLifecycle, LimitRanger, ServiceAccount, TaintNodesByCondition, Priority, \
                    DefaultTolerationSeconds, DefaultStorageClass, StorageObjectInUseProtection, \
                    PersistentVolumeClaimResize, RuntimeClass, DefaultIngressClass, ResourceQuota";
        assert_eq!(plugins(&["Priorty"], &[]), Err(format!("unknown admission plugin \"Priorty\": {list}")));
        assert_eq!(
            plugins(&[], &["priority"]),
            Err(format!("unknown admission plugin \"priority\": {list}"))
        );
        assert_eq!(
            plugins(&["PodSecurity"], &[]),
            Err(format!("admission plugin PodSecurity is not implemented: {list}"))
        );
        assert!(plugins(&["Priority"], &["Priority"]).unwrap_err().contains("both enabled and disabled"));
    }
}
