//! Volumes, claims, classes and drivers.

use serde_json::Value;

use super::super::Object;
use super::{AGE, Column, Fixed, NAME, born, flag, items, number, or_unset, text, truth, wide};

pub(in crate::registry) const VOLUME: Fixed = Fixed {
    columns: &[
        NAME,
        text("Capacity"),
        text("Access Modes"),
        text("Reclaim Policy"),
        text("Status"),
        text("Claim"),
        text("StorageClass"),
        text("VolumeAttributesClass"),
        text("Reason"),
        AGE,
        wide("VolumeMode"),
    ],
    cells: |o, now| {
        let claim = o.at("/spec/claimRef").map(|claim| {
            let part = |field: &str| claim[field].as_str().unwrap_or_default();
            format!("{}/{}", part("namespace"), part("name"))
        });
        vec![
            o.name().into(),
            quantity(o.at("/spec/capacity/storage")),
            access_modes(items(o, "/spec/accessModes")),
            o.str_at("/spec/persistentVolumeReclaimPolicy").into(),
            phase(o),
            claim.unwrap_or_default().into(),
            class(o),
            or_unset(o, "/spec/volumeAttributesClassName"),
            o.str_at("/status/reason").into(),
            born(o, now),
            or_unset(o, "/spec/volumeMode"),
        ]
    },
};

pub(in crate::registry) const CLAIM: Fixed = Fixed {
    columns: &[
        NAME,
        text("Status"),
        text("Volume"),
        text("Capacity"),
        text("Access Modes"),
        text("StorageClass"),
        text("VolumeAttributesClass"),
        AGE,
        wide("VolumeMode"),
    ],
    cells: |o, now| {
        let volume = o.str_at("/spec/volumeName");
        let (capacity, modes) = match volume {
            "" => ("".into(), "".into()),
            _ => (quantity(o.at("/status/capacity/storage")), access_modes(items(o, "/status/accessModes"))),
        };
        vec![
            o.name().into(),
            phase(o),
            volume.into(),
            capacity,
            modes,
            class(o),
            or_unset(o, "/spec/volumeAttributesClassName"),
            born(o, now),
            or_unset(o, "/spec/volumeMode"),
        ]
    },
};

fn quantity(value: Option<&Value>) -> Value {
    value.cloned().unwrap_or("0".into())
}

fn phase(object: &Object) -> Value {
    if object.is_deleting() { "Terminating".into() } else { object.str_at("/status/phase").into() }
}

/// The deprecated annotation of the class takes precedence.
fn class(object: &Object) -> Value {
    let old =
        object.metadata().get("annotations").and_then(|a| a.get("volume.beta.kubernetes.io/storage-class"));
    old.cloned().unwrap_or(object.str_at("/spec/storageClassName").into())
}

/// `RWO,ROX`, in a fixed order without duplicates.
fn access_modes(modes: &[Value]) -> Value {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let shown = short.iter().filter(|(mode, _)| modes.iter().any(|m| m == mode)).map(|(_, short)| *short);
    shown.collect::<Vec<_>>().join(",").into()
}

pub(in crate::registry) const CLASS: Fixed = Fixed {
    columns: &[
        NAME,
        text("Provisioner"),
        text("ReclaimPolicy"),
        text("VolumeBindingMode"),
        text("AllowVolumeExpansion"),
        AGE,
    ],
    cells: |o, now| {
        let defaults = [
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ];
        vec![
            super::marked_default(o, &defaults),
            o.str_at("/provisioner").into(),
            o.at("/reclaimPolicy").cloned().unwrap_or("Delete".into()),
            o.at("/volumeBindingMode").cloned().unwrap_or("Immediate".into()),
            flag(o, "/allowVolumeExpansion", false),
            born(o, now),
        ]
    },
};

pub(in crate::registry) const ATTRIBUTES_CLASS: Fixed = Fixed {
    columns: &[NAME, text("DriverName"), AGE],
    cells: |o, now| vec![o.name().into(), o.str_at("/driverName").into(), born(o, now)],
};

pub(in crate::registry) const ATTACHMENT: Fixed = Fixed {
    columns: &[
        NAME,
        Column { format: "name", ..text("Attacher") },
        text("PV"),
        text("Node"),
        truth("Attached"),
        AGE,
    ],
    cells: |o, now| {
        vec![
            o.name().into(),
            o.str_at("/spec/attacher").into(),
            o.str_at("/spec/source/persistentVolumeName").into(),
            o.str_at("/spec/nodeName").into(),
            flag(o, "/status/attached", false),
            born(o, now),
        ]
    },
};

pub(in crate::registry) const NODE: Fixed = Fixed {
    columns: &[NAME, number("Drivers"), AGE],
    cells: |o, now| vec![o.name().into(), items(o, "/spec/drivers").len().into(), born(o, now)],
};

pub(in crate::registry) const CAPACITY: Fixed = Fixed {
    columns: &[NAME, text("StorageClassName"), text("Capacity")],
    cells: |o, _| vec![o.name().into(), o.str_at("/storageClassName").into(), or_unset(o, "/capacity")],
};

pub(in crate::registry) const DRIVER: Fixed = Fixed {
    columns: &[
        NAME,
        truth("AttachRequired"),
        truth("PodInfoOnMount"),
        truth("StorageCapacity"),
        text("TokenRequests"),
        truth("RequiresRepublish"),
        text("Modes"),
        AGE,
    ],
    cells: |o, now| {
        let joined = |values: Vec<&str>| values.join(",");
        let audiences = o.at("/spec/tokenRequests").and_then(Value::as_array).map(|requests| {
            joined(requests.iter().filter_map(|request| request["audience"].as_str()).collect())
        });
        let modes = joined(items(o, "/spec/volumeLifecycleModes").iter().filter_map(Value::as_str).collect());
        vec![
            o.name().into(),
            flag(o, "/spec/attachRequired", true),
            flag(o, "/spec/podInfoOnMount", false),
            flag(o, "/spec/storageCapacity", false),
            audiences.map_or("<unset>".into(), Value::from),
            flag(o, "/spec/requiresRepublish", false),
            super::or_none(&modes),
            born(o, now),
        ]
    },
};
