//! What makes an object of a kind invalid. Not all the original refuses: the checks that clients meet in practice.

mod batch;
mod container;
mod data;
mod event;
mod numbers;
mod pod;
mod selector;
mod service;
mod workload;

pub(super) use self::batch::cron_job;
pub(super) use self::batch::job;
pub(super) use self::batch::job_update;
pub(super) use self::data::config_map;
pub(super) use self::data::config_map_update;
pub(super) use self::data::secret;
pub(super) use self::data::secret_update;
pub(super) use self::event::event;
pub(super) use self::pod::pod;
pub(super) use self::pod::pod_update;
pub(super) use self::service::service;
pub(super) use self::workload::daemon_set;
pub(super) use self::workload::deployment;
pub(super) use self::workload::replica_set;
pub(super) use self::workload::replication_controller;
pub(super) use self::workload::selector_update;
pub(super) use self::workload::stateful_set;
pub(super) use self::workload::stateful_set_update;
