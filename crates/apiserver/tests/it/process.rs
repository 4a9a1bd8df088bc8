//! The server as a process: authentication, TLS, metrics and fault endpoints.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use kube_embedded_apiserver::{ApiServer, Fault, FaultRule, ServerLimits, StartError, Tls, Tokens, Verb};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use serde_json::{Map, Value, json};

use crate::golden::exchange::{read, send};

const TOKEN: &str = "0123456789abcdef";
const TIMEOUT: Duration = Duration::from_secs(20);

async fn fetch(address: SocketAddr, request: Value) -> Map<String, Value> {
    read(send(address, &request).await.expect("a response")).await.expect("whole")
}

fn map(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.into()), ..Default::default() }, ..Default::default() }
}

#[tokio::test]
async fn requests_with_a_foreign_host_or_an_origin_are_rejected() {
    let server = ApiServer::start().await.expect("the server starts");
    for headers in [json!({"Host": "evil.example"}), json!({"Origin": "http://localhost"})] {
        let got = fetch(server.address(), json!({"path": "/api/v1/secrets", "headers": headers})).await;
        assert_eq!(got["status"], 403, "{got:?}");
        assert_eq!((&got["body"]["kind"], &got["body"]["reason"]), (&json!("Status"), &json!("Forbidden")));
    }
    assert_eq!(fetch(server.address(), json!({"path": "/api/v1/secrets"})).await["status"], 200);
}

#[tokio::test]
async fn only_health_checks_work_without_a_token() {
    let server =
        ApiServer::builder().tokens(Tokens::new([TOKEN]).expect("a token")).start().await.expect("started");
    let with = |token: &str| json!({"path": "/api/v1/secrets", "headers": {"Authorization": format!("Bearer {token}")}});
    for request in [json!({"path": "/api/v1/secrets"}), with("fedcba9876543210"), json!({"path": "/metrics"})]
    {
        let got = fetch(server.address(), request).await;
        let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized",
            "reason": "Unauthorized", "code": 401});
        assert_eq!((&got["status"], &got["body"]), (&json!(401), &expected));
    }
    assert_eq!(fetch(server.address(), with(TOKEN)).await["status"], 200);
    assert_eq!(fetch(server.address(), json!({"path": "/readyz"})).await["text"], "ok");
    let namespaces: Api<Namespace> = Api::all(server.client().expect("a client"));
    assert_eq!(namespaces.list(&Default::default()).await.expect("authenticated").items.len(), 4);
}

/// A client that is configured only by the kubeconfig.
async fn by_kubeconfig(server: &ApiServer) -> kube::Client {
    let config = kube::config::Kubeconfig::from_yaml(&server.kubeconfig()).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.expect("complete");
    kube::Client::try_from(config).expect("a client")
}

#[tokio::test]
async fn other_addresses_are_served_with_tls_and_a_token() {
    let everywhere: SocketAddr = "0.0.0.0:0".parse().expect("an address");
    let bare = ApiServer::builder().listen(everywhere).start().await;
    assert!(matches!(bare, Err(StartError::Exposed { missing: "TLS and a token", .. })), "{bare:?}");

    let tokens = Tokens::new([TOKEN]).expect("a token");
    let server = ApiServer::builder().listen(everywhere).tls(Tls::self_signed()).tokens(tokens).start().await;
    let server = server.expect("the server starts");
    assert!(server.url().starts_with("https://127.0.0.1:"), "{}", server.url());
    for client in [by_kubeconfig(&server).await, server.client().expect("a client")] {
        let namespaces: Api<Namespace> = Api::all(client);
        assert_eq!(
            namespaces.list(&Default::default()).await.expect("trusted and authenticated").items.len(),
            4
        );
    }
    let plain = send(server.address(), &json!({"path": "/livez"})).await;
    assert!(plain.is_err(), "plain HTTP fails on a TLS port: {plain:?}");
    server.shutdown().await;
}

#[tokio::test]
async fn a_given_certificate_is_used() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let tls = Tls::from_pem(made.cert.pem(), made.signing_key.serialize_pem());
    let server =
        ApiServer::builder().host_name("localhost").tls(tls).start().await.expect("the server starts");
    assert!(server.url().starts_with("https://localhost:"));
    let version = by_kubeconfig(&server).await.apiserver_version().await.expect("trusted");
    assert_eq!(version.minor, "36");
}

/// A client with a certificate, and without a token.
async fn by_certificate(server: &ApiServer, certificate: &str, key: &str) -> kube::Client {
    let authority = server.certificate_authority().expect("an authority");
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": {
            "server": server.url(),
            "certificate-authority-data": STANDARD.encode(authority),
        }}],
        "users": [{"name": "a", "user": {
            "client-certificate-data": STANDARD.encode(certificate),
            "client-key-data": STANDARD.encode(key),
        }}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    });
    let config = kube::config::Kubeconfig::from_yaml(&config.to_string()).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.expect("complete");
    kube::Client::try_from(config).expect("a client")
}

#[tokio::test]
async fn a_client_certificate_names_the_user_and_stands_for_a_token() {
    let authority = || {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
    };
    let (ours, other) = (authority(), authority());
    let key = KeyPair::generate().expect("a key");
    let signed_by = |issuer| {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, "jane");
        params.distinguished_name.push(DnType::OrganizationName, "developers");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.signed_by(&key, issuer).expect("a certificate").pem()
    };
    let tls = Tls::self_signed().client_authority(ours.pem());
    let tokens = Tokens::new([TOKEN]).expect("a token");
    let server = ApiServer::builder().tls(tls).tokens(tokens).start().await.expect("the server starts");

    let reviews: Api<SelfSubjectReview> =
        Api::all(by_certificate(&server, &signed_by(&ours), &key.serialize_pem()).await);
    let review = reviews.create(&Default::default(), &SelfSubjectReview::default()).await.expect("access");
    let user = review.status.and_then(|status| status.user_info).expect("a user");
    assert_eq!(user.username.as_deref(), Some("jane"));
    assert_eq!(user.groups, Some(vec!["developers".to_owned(), "system:authenticated".to_owned()]));

    let foreign = by_certificate(&server, &signed_by(&other), &key.serialize_pem()).await;
    assert!(foreign.apiserver_version().await.is_err(), "a certificate of another authority gives no access");
    let by_token = by_kubeconfig(&server).await.apiserver_version().await;
    assert!(by_token.is_ok(), "no client needs a certificate: {by_token:?}");
}

#[tokio::test]
async fn fault_endpoints_are_off_by_default() {
    let server = ApiServer::start().await.expect("the server starts");
    let post = |path: &str| json!({"method": "POST", "path": path});
    assert_eq!(fetch(server.address(), post("/faults/compact")).await["status"], 404);

    let server = ApiServer::builder().fault_endpoints(true).start().await.expect("the server starts");
    let list = json!({"path": "/api/v1/pods"});
    for (code, reason) in [
        (403, "Forbidden"),
        (409, "Conflict"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (504, "Timeout"),
    ] {
        let path = format!("/faults/fail?code={code}&times=1&verb=list&resource=pods");
        let got = fetch(server.address(), post(&path)).await;
        assert_eq!((&got["status"], &got["body"]["rules"][0]["left"]), (&json!(200), &json!(1)), "{got:?}");
        assert_eq!(fetch(server.address(), json!({"path": "/api/v1/nodes"})).await["status"], 200);
        let got = fetch(server.address(), list.clone()).await;
        assert_eq!((&got["status"], &got["body"]["reason"]), (&json!(code), &json!(reason)));
        assert_eq!(fetch(server.address(), list.clone()).await["status"], 200);
    }
    fetch(server.address(), post("/faults/fail?code=500&times=5")).await;
    let got = fetch(server.address(), json!({"method": "DELETE", "path": "/faults"})).await;
    assert_eq!(got["body"]["rules"], json!([]));
    for bad in [
        "/faults/fail?code=404",
        "/faults/fail?code=500&times=x",
        "/faults/fail?code=500&verb=eat",
        "/faults/explode",
    ] {
        let got = fetch(server.address(), post(bad)).await;
        assert_eq!((&got["status"], &got["body"]["reason"]), (&json!(400), &json!("BadRequest")), "{bad}");
    }
    assert_eq!(fetch(server.address(), json!({"path": "/faults/compact"})).await["status"], 405);
}

#[tokio::test]
async fn every_fault_endpoint_works() {
    let server = ApiServer::builder().fault_endpoints(true).start().await.expect("the server starts");
    let post_fault = async |path: &str| {
        let got = fetch(server.address(), json!({"method": "POST", "path": format!("/faults/{path}")})).await;
        assert_eq!(got["status"], 200, "{path}: {got:?}");
    };
    let version = fetch(server.address(), json!({"path": "/api/v1/namespaces"})).await["body"]["metadata"]["resourceVersion"].clone();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client().expect("a client"));
    maps.create(&PostParams::default(), &map("a")).await.expect("stored");
    post_fault("compact").await;
    post_fault("forget-window").await;
    let version = version.as_str().expect("a version");
    let exact =
        json!({"path": format!("/api/v1/namespaces?resourceVersion={version}&resourceVersionMatch=Exact")});
    assert_eq!(fetch(server.address(), exact).await["status"], 410);

    let watch =
        send(server.address(), &json!({"path": "/api/v1/namespaces?watch=1"})).await.expect("a watch");
    post_fault("cut-watches?resource=namespaces").await;
    let ended = tokio::time::timeout(TIMEOUT, read(watch)).await.expect("it ends");
    assert!(ended.is_ok(), "cleanly: {ended:?}");

    post_fault("lag?resource=configmaps").await;
    maps.create(&PostParams::default(), &map("b")).await.expect("stored");
    let any = json!({"path": "/api/v1/configmaps?resourceVersion=0"});
    let count = |got: &Map<String, Value>| got["body"]["items"].as_array().map(Vec::len);
    assert_eq!(count(&fetch(server.address(), any.clone()).await), Some(1), "behind");
    post_fault("lag?resource=configmaps&on=false").await;
    assert_eq!(count(&fetch(server.address(), any.clone()).await), Some(2), "caught up");

    post_fault("unready?resource=configmaps&cause=tests").await;
    let got = fetch(server.address(), any.clone()).await;
    assert_eq!(
        (&got["status"], &got["body"]["message"]),
        (&json!(429), &json!("storage is (re)initializing: tests"))
    );
    post_fault("forget-window?resource=configmaps").await;
    assert_eq!(fetch(server.address(), any).await["status"], 200);
}

#[tokio::test]
async fn a_write_whose_response_is_lost_is_executed() {
    let server = ApiServer::start().await.expect("the server starts");
    let post = json!({"method": "POST", "path": "/api/v1/namespaces/default/configmaps", "json": {"metadata": {"name": "a"}}});
    server.faults().add(FaultRule::new(Fault::ResponseLost).verb(Verb::Create));
    let lost = send(server.address(), &post).await;
    assert!(lost.is_err(), "{lost:?}");
    let maps: Api<ConfigMap> = Api::default_namespaced(server.local().client());
    assert!(maps.get_opt("a").await.expect("read").is_some(), "the write was executed");
    server.faults().add(FaultRule::new(Fault::ResponseLost).verb(Verb::Delete));
    let lost = maps.delete("a", &Default::default()).await.expect_err("lost without sockets as well");
    assert!(lost.to_string().contains("response was lost"), "{lost}");
    assert!(maps.get_opt("a").await.expect("read").is_none());
    assert_eq!(fetch(server.address(), post).await["status"], 201);
}

#[tokio::test]
async fn watches_have_limits() {
    let mut limits = ServerLimits::default();
    limits.watches = 1;
    let server = ApiServer::builder().limits(limits).start().await.expect("the server starts");
    let watch = json!({"path": "/api/v1/namespaces?watch=1"});
    let open = send(server.address(), &watch).await.expect("a watch");
    assert_eq!(open.status(), 200);
    let got = fetch(server.address(), watch.clone()).await;
    assert_eq!((&got["status"], &got["headers"]["retry-after"]), (&json!(429), &json!("1")));
    assert_eq!(got["body"]["reason"], "TooManyRequests");
    server.faults().cut_watches(None);
    tokio::time::timeout(TIMEOUT, read(open)).await.expect("it ends").expect("cleanly");
    let again = async {
        while send(server.address(), &watch).await.expect("a response").status() != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, again).await.expect("its permit is released");
}

#[tokio::test]
async fn watches_of_one_connection_have_a_limit() {
    let mut limits = ServerLimits::default();
    limits.watches_per_connection = 2;
    let server = ApiServer::builder().limits(limits).start().await.expect("the server starts");
    let connect = async || {
        let stream = tokio::net::TcpStream::connect(server.address()).await.expect("connected");
        let io = hyper_util::rt::TokioIo::new(stream);
        let executor = hyper_util::rt::TokioExecutor::new();
        let (sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.expect("h2");
        tokio::spawn(connection);
        sender
    };
    let watch = || {
        let uri = format!("{}/api/v1/namespaces?watch=1", server.url());
        http::Request::builder()
            .uri(uri)
            .body(http_body_util::Full::<bytes::Bytes>::default())
            .expect("a request")
    };
    let (mut one, mut other) = (connect().await, connect().await);
    let mut open = Vec::new();
    for expected in [200, 200, 429] {
        let response = one.send_request(watch()).await.expect("a response");
        assert_eq!(response.status(), expected);
        open.push(response);
    }
    assert_eq!(
        other.send_request(watch()).await.expect("a response").status(),
        200,
        "each connection has its own limit"
    );
}

#[tokio::test]
async fn metrics_have_the_names_of_kube_apiserver() {
    let server = ApiServer::start().await.expect("the server starts");
    let watch =
        send(server.address(), &json!({"path": "/api/v1/namespaces?watch=1"})).await.expect("a watch");
    fetch(server.address(), json!({"path": "/api/v1/namespaces/default"})).await;
    fetch(server.address(), json!({"path": "/api/v1/namespaces/none"})).await;
    fetch(server.address(), json!({"path": "/apis/made.up.example/v1/things"})).await;
    let got = fetch(server.address(), json!({"path": "/metrics"})).await;
    assert_eq!(got["headers"]["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = got["text"].as_str().expect("text").to_owned();
    let labels = "component=\"apiserver\",group=\"\",resource=\"namespaces\"";
    let get = "scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v1\"";
    for line in [
        format!("apiserver_request_total{{code=\"200\",{labels},{get}}} 1"),
        format!("apiserver_request_total{{code=\"404\",{labels},{get}}} 1"),
        format!("apiserver_request_duration_seconds_count{{{labels},{get}}} 2"),
        format!(
            "apiserver_longrunning_requests{{{labels},subresource=\"\",verb=\"WATCH\",version=\"v1\"}} 1"
        ),
        "apiserver_storage_objects{resource=\"namespaces\"} 4".to_owned(),
        "apiserver_watch_cache_events_received_total{group=\"\",resource=\"namespaces\"} 4".to_owned(),
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("made.up"), "labels are bounded");
    let size = text.lines().find(|l| l.starts_with("apiserver_storage_size_bytes{")).expect("a size");
    assert!(
        size.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()).is_some_and(|bytes| bytes > 1000),
        "{size}"
    );
    drop(watch);
}
