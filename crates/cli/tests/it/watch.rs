//! `kube-informer watch`.

use crate::process::{Running, kubeconfig, program, run, text};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_embedded_apiserver::ApiServer;
use kube_embedded_apiserver::storage::MemoryStorage;
use serde_json::json;
use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::Command,
    sync::Arc,
};
use tempfile::TempDir;

/// A server, and a kubeconfig for it.
struct World {
    server: ApiServer,
    storage: Arc<MemoryStorage>,
    folder: TempDir,
}

impl World {
    async fn start() -> Self {
        let storage = Arc::new(MemoryStorage::new());
        let server = ApiServer::builder().storage(Arc::clone(&storage) as _).start().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config"), server.kubeconfig()).unwrap();
        Self { server, storage, folder }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    fn watch(&self, arguments: &[&str]) -> Command {
        let mut command = program(&["watch"]);
        command.args(arguments).env("KUBECONFIG", self.kubeconfig());
        command
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::default_namespaced(self.server.client().unwrap())
    }

    async fn make<K>(&self, object: serde_json::Value) -> K
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + serde::de::DeserializeOwned
            + serde::Serialize
            + Clone
            + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap()
    }
}

async fn patch<K>(api: &Api<K>, name: &str, patch: serde_json::Value)
where
    K: serde::de::DeserializeOwned + Clone + std::fmt::Debug,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[test]
fn once_prints_a_summary_and_exits() {
    let arguments =
        ["watch", "pods", "no", "--embedded", "--seed-pods", "100", "--once", "--index", "spec.nodeName"];
    let output = run(&arguments);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let cells = |start: &str| -> Vec<String> {
        let line = out.lines().find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("no {start} in {out}")).split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(cells("KIND")[..3], ["KIND", "OBJECTS", "NAMESPACES"]);
    assert_eq!(cells("pods")[1], "100");
    assert_eq!(cells("nodes")[1..3], ["2", "-"]);
    let on = |node: &str| cells(node)[1].parse::<usize>().unwrap();
    assert_eq!(on("node-0") + on("node-1"), 100, "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_printed_by_field_and_secrets_are_masked() {
    let world = World::start().await;
    world.make::<ConfigMap>(json!({"metadata": {"name": "old"}, "data": {"a": "1"}})).await;
    world.make::<Secret>(json!({"metadata": {"name": "db"}, "stringData": {"password": "hunter2"}})).await;
    let mut watching = Running::start(world.watch(&["cm,secrets"]));
    watching.err("synced 1 configmaps");
    watching.err("synced 1 secrets");

    patch(&world.api::<ConfigMap>(), "old", json!({"data": {"a": "2", "b": "new"}})).await;
    assert_eq!(watching.out("old"), "~ configmaps default/old  data.a: 1 → 2, data.b: (none) → new");
    patch(&world.api::<Secret>(), "db", json!({"stringData": {"password": "hunter3"}})).await;
    assert_eq!(watching.out("db"), "~ secrets default/db  data.password: *** → ***");
    world.api::<ConfigMap>().delete("old", &DeleteParams::default()).await.unwrap();
    assert_eq!(watching.out("old"), "- configmaps default/old");
    assert_eq!(watching.interrupt().0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn json_has_one_event_per_line_from_the_initial_list_on() {
    let world = World::start().await;
    world.make::<ConfigMap>(json!({"metadata": {"name": "old"}})).await;
    world.make::<ConfigMap>(json!({"metadata": {"name": "other", "labels": {"app": "other"}}})).await;
    let mut watching = Running::start(world.watch(&["configmaps", "-o", "json", "-l", "app!=other"]));
    let first: serde_json::Value = serde_json::from_str(&watching.out("type")).unwrap();
    assert_eq!((&first["type"], &first["object"]["metadata"]["name"]), (&json!("INITIAL"), &json!("old")));
    assert_eq!(
        (&first["object"]["kind"], &first["object"]["apiVersion"]),
        (&json!("ConfigMap"), &json!("v1"))
    );
    world.make::<ConfigMap>(json!({"metadata": {"name": "new"}})).await;
    let second: serde_json::Value = serde_json::from_str(&watching.out("type")).unwrap();
    assert_eq!((&second["type"], &second["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("new")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_reported_once() {
    let world = World::start().await;
    world.make::<ConfigMap>(json!({"metadata": {"name": "before"}})).await;
    let mut watching = Running::start(world.watch(&["configmaps"]));
    watching.err("synced 1");

    let port = world.server.address().port();
    let World { server, storage, folder } = world;
    server.shutdown().await;
    let lost = watching.err("lost the server");
    assert!(lost.starts_with("! configmaps: "), "{lost}");

    let server = ApiServer::builder().storage(Arc::clone(&storage) as _).port(port).start().await.unwrap();
    let world = World { server, storage, folder };
    world.make::<ConfigMap>(json!({"metadata": {"name": "during"}})).await;
    assert_eq!(watching.out("during"), "+ configmaps default/during");
    watching.err("back after");
    let (code, rest) = watching.interrupt();
    assert_eq!((code, rest), (Some(0), Vec::new()), "reported once");
}

#[test]
fn failures_have_exit_codes_and_advice() {
    let failed = |output: std::process::Output| (output.status.code(), text(&output.stderr));
    let (code, message) = failed(run(&["watch", "pods"]));
    assert_eq!(code, Some(4), "{message}");
    assert!(message.contains("--embedded"), "{message}");

    let (code, message) = failed(run(&["watch", "pots", "--embedded"]));
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("\"pots\""), "{message}");

    let (code, message) = failed(run(&["watch"]));
    assert_eq!(code, Some(2), "{message}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, kubeconfig("http://127.0.0.1:1")).unwrap();
    let (code, message) = failed(program(&["watch", "pods"]).env("KUBECONFIG", &path).output().unwrap());
    assert_eq!(code, Some(4), "{message}");
    assert!(message.contains("cannot reach the server at http://127.0.0.1:1"), "{message}");
}

/// A discovery document, of a core group that has pods or of no other groups.
pub(crate) fn discovery(core: bool) -> serde_json::Value {
    let pods = json!({"resource": "pods", "responseKind": {"group": "", "version": "v1", "kind": "Pod"}, "scope": "Namespaced",
        "singularResource": "pod", "verbs": ["list", "watch"]});
    let group = json!({"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [pods]}]});
    let items = if core { vec![group] } else { Vec::new() };
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})
}

/// A server that allows discovery and nothing else.
fn refusing_server() -> String {
    let (core, none) = (discovery(true), discovery(false));
    let refusal = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "pods is forbidden: User \"eve\" cannot list resource \"pods\""});
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|read| read > 0) {}
            let (code, body) = match head.split_whitespace().nth(1).unwrap_or_default() {
                "/api" => ("200 OK", &core),
                "/apis" => ("200 OK", &none),
                _ => ("403 Forbidden", &refusal),
            };
            let body = body.to_string();
            let kind = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
            let head = format!(
                "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            // The client may have closed the connection.
            let _ = reader.get_mut().write_all(format!("{head}{body}").as_bytes());
        }
    });
    format!("http://{address}")
}

#[test]
fn a_missing_permission_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, kubeconfig(&refusing_server())).unwrap();
    let refused = program(&["watch", "pods", "-A"]).env("KUBECONFIG", &path).output().unwrap();
    let message = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{message}");
    for part in ["list and watch pods in all namespaces", "eve", "-n"] {
        assert!(message.contains(part), "no {part:?} in {message}");
    }
}

/// The selector is checked before any request: no server is needed to find the mistake.
#[test]
fn a_malformed_selector_is_a_usage_error() {
    for (option, value, part) in [
        ("--selector", "app in (cart", "expected: ',', or ')'"),
        ("--field-selector", "spec.nodeName", "can't understand 'spec.nodeName'"),
    ] {
        let refused =
            program(&["watch", "pods", option, value]).env("KUBECONFIG", "/missing").output().unwrap();
        let message = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{message}");
        assert!(message.contains(part) && message.contains(option), "{message}");
    }
}

#[test]
fn help_and_completions() {
    for command in ["serve", "watch", "demo", "completions"] {
        let help = text(&run(&[command, "--help"]).stdout);
        assert!(help.contains("Example"), "{help}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&run(&["completions", shell]).stdout);
        assert!(script.contains("kube-informer") && script.contains("field-selector"), "{shell}");
    }
}
