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
async fn the_address_is_printed_when_the_server_is_seeded() {
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
    assert!(!path.exists(), "the kubeconfig is removed with its server");
}

#[test]
#[cfg(unix)]
fn the_kubeconfig_is_private_and_replaces_no_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let mut serving = Running::start(program(&["serve", "--kubeconfig-out", path.to_str().unwrap()]));
    serving.out("export KUBECONFIG=");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "mine").unwrap();
    assert_eq!(serving.interrupt().0, Some(0));
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "mine",
        "a file that it did not create is not removed"
    );

    let refused = run(&["serve", "--kubeconfig-out", path.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("exists already"), "{}", text(&refused.stderr));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn invalid_options_are_rejected_with_advice() {
    let refused = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    #[cfg(not(feature = "etcd"))]
    assert!(refused(&["serve", "--storage", "etcd=http://127.0.0.1:2379"]).contains("--features etcd"));
    #[cfg(feature = "etcd")]
    assert!(refused(&["serve", "--storage", "etcd=http://127.0.0.1:1"]).contains("check that etcd runs"));
    assert!(refused(&["serve", "--storage", "etcd"]).contains("--storage etcd=http://"));
    assert!(refused(&["serve", "--storage", "disk"]).contains("--storage memory"));
    let exposed = refused(&["serve", "--listen", "0.0.0.0:8001"]);
    for advice in ["--tls-self-signed", "--token-file", "--listen 127.0.0.1:8001"] {
        assert!(exposed.contains(advice), "{exposed}");
    }
    let unknown = refused(&["serve", "--disable-admission-plugins", "Priority,Quota"]);
    assert!(unknown.contains("\"Quota\": this server has NamespaceLifecycle, LimitRanger,"), "{unknown}");
    assert!(refused(&["serve", "--enable-admission-plugins", "PodSecurity"]).contains("is not implemented"));
    assert!(refused(&["serve", "--token-file", "/nonexistent/tokens"]).contains("/nonexistent/tokens"));
    assert!(
        refused(&["serve", "--tls-cert", "/nonexistent/c", "--tls-key", "/nonexistent/k"])
            .contains("/nonexistent/c")
    );
    assert!(refused(&["serve", "--tls-client-ca", "/nonexistent/ca"]).contains("--tls-self-signed"));
    assert!(
        refused(&["serve", "--tls-self-signed", "--tls-client-ca", "/nonexistent/ca"])
            .contains("/nonexistent/ca")
    );
}

#[tokio::test]
async fn other_machines_come_with_a_token_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (tokens, path) = (folder.path().join("tokens"), folder.path().join("ci.kubeconfig"));
    std::fs::write(&tokens, "0123456789abcdef\n").unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&tokens, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let arguments = [
        "serve",
        "--listen",
        "0.0.0.0:0",
        "--tls-self-signed",
        "--token-file",
        tokens.to_str().unwrap(),
        "--hostname",
        "localhost",
        "--kubeconfig-out",
        path.to_str().unwrap(),
    ];
    let mut serving = Running::start(program(&arguments));
    let address = serving.out("serving at https://localhost:");
    assert!(address.contains("reachable from other machines, every token gives full access"), "{address}");
    #[cfg(unix)]
    serving.err("chmod 600");
    serving.out("export KUBECONFIG=");
    let pods = Api::<Pod>::all(client(&path).await).list(&Default::default()).await.unwrap();
    assert!(pods.items.is_empty());
    assert_eq!(serving.interrupt().0, Some(0));
}

#[tokio::test]
async fn deletes_remove_pods_if_configured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dev.kubeconfig");
    let arguments = [
        "serve",
        "--finalize-pods",
        "--fault-endpoints",
        "--seed-pods",
        "3",
        "--kubeconfig-out",
        path.to_str().unwrap(),
    ];
    let mut serving = Running::start(program(&arguments));
    serving.out("faults at http://127.0.0.1:");
    serving.out("export KUBECONFIG=");
    let client = client(&path).await;
    let pods = Api::<Pod>::all(client.clone()).list(&Default::default()).await.unwrap().items;
    let pod = &pods[0].metadata;
    let own: Api<Pod> = Api::namespaced(client, pod.namespace.as_deref().unwrap());
    own.delete(pod.name.as_deref().unwrap(), &Default::default()).await.unwrap();
    assert!(own.get_opt(pod.name.as_deref().unwrap()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_test_runner_starts_the_server_resets_it_and_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dev.kubeconfig");
    std::fs::write(&path, "of a server that was killed").unwrap();
    let mut command = program(&[
        "serve",
        "--like-cluster",
        "--exit-with-parent",
        "--fault-endpoints",
        "--seed-pods",
        "5",
        "--output",
        "json",
        "--kubeconfig-overwrite",
        "--kubeconfig-out",
        path.to_str().unwrap(),
    ]);
    command.stdin(std::process::Stdio::piped());
    let mut serving = Running::start(command);
    let ready: serde_json::Value = serde_json::from_str(&serving.out("{")).unwrap();
    assert!(ready["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{ready}");
    assert!(ready["pid"].is_u64() && ready["token"].is_null() && ready["certificateAuthority"].is_null());
    assert_eq!(ready["kubeconfig"].as_str().map(std::path::Path::new), path.canonicalize().ok().as_deref());

    let client = client(&path).await;
    let pods = Api::<Pod>::all(client.clone());
    let count = async || pods.list(&Default::default()).await.unwrap().items.len();
    let first = pods.list(&Default::default()).await.unwrap().items.remove(0).metadata;
    let own: Api<Pod> = Api::namespaced(client.clone(), first.namespace.as_deref().unwrap());
    own.delete(first.name.as_deref().unwrap(), &kube::api::DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    assert_eq!(count().await, 4);
    let reset = http::Request::post("/snapshots/start/restore").body(Vec::new()).unwrap();
    client.request_text(reset).await.unwrap();
    assert_eq!(count().await, 5);
    assert_eq!(own.get(first.name.as_deref().unwrap()).await.unwrap().metadata.uid, first.uid);

    assert_eq!(serving.close_input(), Some(0));
    assert!(!path.exists());
}

#[tokio::test]
async fn a_controller_manager_gets_namespaces_to_empty_and_jobs_to_collect() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dev.kubeconfig");
    let mut serving = Running::start(program(&[
        "serve",
        "--controller-manager",
        "--kubeconfig-out",
        path.to_str().unwrap(),
    ]));
    serving.out("export KUBECONFIG=");
    let client = client(&path).await;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(serde_json::json!({"metadata": {"name": "shop"}})).unwrap();
    namespaces.create(&Default::default(), &namespace).await.unwrap();
    namespaces.delete("shop", &Default::default()).await.unwrap();
    let waiting = namespaces.get("shop").await.unwrap();
    assert_eq!(waiting.status.unwrap().phase.as_deref(), Some("Terminating"), "nobody empties it here");
}
