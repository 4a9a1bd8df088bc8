//! `kube-informer serve`.

use crate::process::{Running, program, run, text};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, config::KubeConfigOptions, config::Kubeconfig};

async fn client(kubeconfig: &std::path::Path) -> kube::Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

#[tokio::test]
async fn serves_what_was_asked_for_when_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dev.kubeconfig");
    let arguments = ["serve", "--seed-pods", "120", "--kubeconfig-out", path.to_str().unwrap()];
    let mut serving = Running::start(program(&arguments));
    let address = serving.out("serving at http://127.0.0.1:");
    assert!(address.contains("no authentication"), "{address}");
    let export = serving.out("export KUBECONFIG=");
    assert!(export.ends_with("dev.kubeconfig"), "{export}");

    let client = client(&path).await;
    let pods = Api::<Pod>::all(client.clone()).list(&Default::default()).await.unwrap().items;
    assert_eq!(pods.len(), 120);
    let running =
        |pod: &Pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
    assert!(pods.iter().all(running));
    assert_eq!(Api::<Node>::all(client).list(&Default::default()).await.unwrap().items.len(), 3);

    assert_eq!(serving.interrupt().0, Some(0));
    assert!(!path.exists(), "a kubeconfig of a server that is gone is of no use");
}

#[test]
#[cfg(unix)]
fn the_kubeconfig_is_for_its_owner_and_replaces_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let mut serving = Running::start(program(&["serve", "--kubeconfig-out", path.to_str().unwrap()]));
    serving.out("export KUBECONFIG=");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    drop(serving);

    std::fs::write(&path, "mine").unwrap();
    let refused = run(&["serve", "--kubeconfig-out", path.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("exists already"), "{}", text(&refused.stderr));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn what_cannot_be_done_is_refused_with_advice() {
    let refused = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    assert!(refused(&["serve", "--storage", "etcd=http://127.0.0.1:2379"]).contains("not built into"));
    assert!(refused(&["serve", "--listen", "0.0.0.0:8001"]).contains("--listen 127.0.0.1:8001"));
}
