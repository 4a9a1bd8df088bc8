//! Plugins that complete objects for the controllers of a cluster: `ServiceAccount`, `StorageObjectInUseProtection`,
//! `DefaultStorageClass` and `DefaultIngressClass`.

use kube_embedded_apiserver::{ApiServer, ApiServerBuilder};
use serde_json::{Value, json};

use crate::cluster::{Cluster, MERGE};

const PODS: &str = "/api/v1/namespaces/default/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

async fn cluster(builder: ApiServerBuilder) -> Cluster {
    let server = builder.seed(5).in_process().await.expect("the server starts");
    let client = server.client();
    Cluster { server, client }
}

/// The server as kube-controller-manager needs it.
async fn managed() -> Cluster {
    cluster(ApiServer::builder().controller_manager(true)).await
}

async fn created(c: &Cluster, path: &str, object: Value) -> Value {
    let (code, created) = c.post(path, object).await;
    assert_eq!(code, 201, "{created}");
    created
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    pod["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    pod
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn a_pod_runs_as_an_account_that_exists() {
    let c = managed().await;
    for (name, spec) in [("default", json!({})), ("builder", json!({"serviceAccountName": "builder"}))] {
        let (code, status) = c.post(PODS, pod("a", spec)).await;
        let why = format!(
            "pods \"a\" is forbidden: error looking up service account default/{name}: serviceaccount \"{name}\" not found"
        );
        assert_eq!((code, &status["message"]), (403, &json!(why)));
    }
    created(
        &c,
        ACCOUNTS,
        json!({"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "registry"}]}),
    )
    .await;
    let made = created(&c, PODS, pod("a", json!({}))).await;
    let spec = &made["spec"];
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "registry"}]));
    let volume = spec["volumes"][0]["name"].as_str().expect("a volume");
    assert!(volume.starts_with("kube-api-access-") && volume.len() == 21, "{volume}");
    assert_eq!(
        spec["containers"][0]["volumeMounts"],
        json!([{"name": volume, "readOnly": true, "mountPath": TOKEN_PATH}])
    );
    let sources = &spec["volumes"][0]["projected"]["sources"];
    assert_eq!(sources[0]["serviceAccountToken"], json!({"path": "token", "expirationSeconds": 3607}));
    assert_eq!(sources[1]["configMap"]["name"], "kube-root-ca.crt");
    assert_eq!(sources[2]["downwardAPI"]["items"][0]["path"], "namespace");
    let secrets = json!({"imagePullSecrets": [{"name": "own"}]});
    assert_eq!(
        created(&c, PODS, pod("b", secrets.clone())).await["spec"]["imagePullSecrets"],
        secrets["imagePullSecrets"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_may_do_without_the_token() {
    let c = managed().await;
    created(&c, ACCOUNTS, named("default")).await;
    created(&c, ACCOUNTS, json!({"metadata": {"name": "closed"}, "automountServiceAccountToken": false}))
        .await;
    let mounts = async |name: &str, spec: Value| {
        let made = created(&c, PODS, pod(name, spec)).await;
        made["spec"]["volumes"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(mounts("a", json!({})).await, 1);
    assert_eq!(mounts("b", json!({"automountServiceAccountToken": false})).await, 0);
    assert_eq!(mounts("c", json!({"serviceAccountName": "closed"})).await, 0);
    let open = json!({"serviceAccountName": "closed", "automountServiceAccountToken": true});
    assert_eq!(mounts("d", open).await, 1);
    let own = json!({"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": TOKEN_PATH}]}],
        "volumes": [{"name": "v", "emptyDir": {}}]});
    assert_eq!(mounts("e", own).await, 1, "only its own");
}

#[tokio::test(start_paused = true)]
async fn the_default_account_is_awaited_for_a_moment() {
    let c = managed().await;
    let (made, account) = tokio::join!(c.post(PODS, pod("a", json!({}))), async {
        tokio::task::yield_now().await;
        c.post(ACCOUNTS, named("default")).await
    });
    assert_eq!((made.0, account.0), (201, 201), "{}", made.1);
}

#[tokio::test(start_paused = true)]
async fn claims_and_volumes_are_protected() {
    let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let volume = json!({"metadata": {"name": "v", "finalizers": ["kubernetes.io/pv-protection"]},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}});
    let c = managed().await;
    let finalizers = |object: &Value| object["metadata"]["finalizers"].clone();
    let made = created(&c, CLAIMS, claim.clone()).await;
    assert_eq!(finalizers(&made), json!(["kubernetes.io/pvc-protection"]));
    let made = created(&c, "/api/v1/persistentvolumes", volume).await;
    assert_eq!(finalizers(&made), json!(["kubernetes.io/pv-protection"]), "once");
    let class = json!({"metadata": {"name": "a"}, "driverName": "d", "parameters": {"a": "b"}});
    let made = created(&c, "/apis/storage.k8s.io/v1/volumeattributesclasses", class).await;
    assert_eq!(finalizers(&made), json!(["kubernetes.io/vac-protection"]));
    // Without a controller that removes it, no finalizer is added.
    let bare = Cluster::new().await;
    assert!(finalizers(&created(&bare, CLAIMS, claim).await).is_null());
    assert!(created(&bare, PODS, pod("a", json!({}))).await["spec"]["serviceAccountName"].is_null());
}

/// A class that is the default by this annotation.
fn default_class(name: &str, annotation: &str, field: (&str, Value)) -> Value {
    json!({"metadata": {"name": name, "annotations": {annotation: "true"}}, field.0: field.1})
}

#[tokio::test(start_paused = true)]
async fn claims_get_the_default_storage_class() {
    let c = Cluster::new().await;
    let claim = |name: &str, class: Value| {
        json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": "1Gi"}}}})
    };
    assert!(created(&c, CLAIMS, claim("none", Value::Null)).await["spec"]["storageClassName"].is_null());
    let annotation = "storageclass.kubernetes.io/is-default-class";
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    for name in ["b", "a"] {
        created(&c, classes, default_class(name, annotation, ("provisioner", json!("p")))).await;
    }
    let class = async |name: &str, class: Value| {
        created(&c, CLAIMS, claim(name, class)).await["spec"]["storageClassName"].clone()
    };
    assert_eq!(class("first", Value::Null).await, "a", "created in the same second");
    assert_eq!(class("own", json!("other")).await, "other");
    assert_eq!(class("static", json!("")).await, "");
}

/// A claim grows if it is bound and its class allows it. The rest of it does not change.
#[tokio::test(start_paused = true)]
async fn a_claim_grows_if_its_class_allows_it() {
    let c = Cluster::new().await;
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    for (name, allowed) in [("fixed", json!(false)), ("unset", Value::Null), ("grows", json!(true))] {
        let class = json!({"metadata": {"name": name}, "provisioner": "p", "allowVolumeExpansion": allowed});
        created(&c, classes, class).await;
    }
    let size = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
    let message = |status: &Value| status["message"].as_str().unwrap_or_default().to_owned();
    for name in ["fixed", "unset", "grows", "missing"] {
        let claim = json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": name,
            "resources": {"requests": {"storage": "2Gi"}}}});
        created(&c, CLAIMS, claim).await;
        let path = format!("{CLAIMS}/{name}");
        let (code, status) = c.patch(&path, MERGE, size("3Gi")).await;
        assert_eq!(code, 422, "{status}");
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        assert!(message(&status).contains(why), "{status}");
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
        assert_eq!(c.patch(&format!("{path}/status"), MERGE, bound).await.0, 200);
        let volume = json!({"spec": {"volumeName": "v"}});
        assert_eq!(c.patch(&path, MERGE, volume).await.0, 200, "the controller names the volume, once");
        let (code, status) = c.patch(&path, MERGE, size("3Gi")).await;
        if name == "grows" {
            assert_eq!(
                (code, &status["spec"]["resources"]["requests"]["storage"]),
                (200, &json!("3Gi")),
                "{status}"
            );
        } else {
            assert_eq!(code, 403, "{status}");
            let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
            assert_eq!(message(&status), format!("persistentvolumeclaims {name:?} is forbidden: {why}"));
        }
        assert_eq!(
            c.patch(&path, MERGE, size("1500Mi")).await.0,
            200,
            "an expansion that failed is taken back"
        );
        let (code, status) = c.patch(&path, MERGE, size("1Gi")).await;
        assert_eq!(code, 422, "{status}");
        assert!(message(&status).contains("field can not be less than status.capacity"), "{status}");
        for other in [
            json!({"volumeName": "w"}),
            json!({"accessModes": ["ReadOnlyMany"]}),
            json!({"storageClassName": "x"}),
        ] {
            assert_eq!(c.patch(&path, MERGE, json!({"spec": other})).await.0, 422);
        }
    }
    let off = cluster(ApiServer::builder().disable_admission_plugins(["PersistentVolumeClaimResize"])).await;
    let claim = json!({"metadata": {"name": "a"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}});
    created(&off, CLAIMS, claim).await;
    let path = format!("{CLAIMS}/a");
    assert_eq!(
        off.patch(&format!("{path}/status"), MERGE, json!({"status": {"phase": "Bound"}})).await.0,
        200
    );
    assert_eq!(off.patch(&path, MERGE, size("3Gi")).await.0, 200);
    // A claim without a class may get one later.
    assert_eq!(off.patch(&path, MERGE, json!({"spec": {"storageClassName": "x"}})).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn ingresses_get_the_newest_default_class() {
    let now = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let start = tokio::time::Instant::now();
    let c = cluster(ApiServer::builder().clock(move || now + start.elapsed())).await;
    let annotation = "ingressclass.kubernetes.io/is-default-class";
    let classes = "/apis/networking.k8s.io/v1/ingressclasses";
    for name in ["old", "new"] {
        let spec = json!({"controller": "example.com/c"});
        created(&c, classes, default_class(name, annotation, ("spec", spec))).await;
        tokio::time::advance(std::time::Duration::from_secs(2)).await;
    }
    let ingress = |name: &str, annotations: Value| {
        json!({"metadata": {"name": name, "annotations": annotations},
            "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}})
    };
    let made = created(&c, INGRESSES, ingress("a", json!({}))).await;
    assert_eq!(made["spec"]["ingressClassName"], "new");
    let made = created(&c, INGRESSES, ingress("b", json!({"kubernetes.io/ingress.class": "nginx"}))).await;
    assert!(made["spec"]["ingressClassName"].is_null(), "{made}");
}
