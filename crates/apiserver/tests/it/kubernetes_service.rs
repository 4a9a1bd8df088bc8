//! The Service `default/kubernetes`.

use kube_embedded_apiserver::ApiServer;
use kube_embedded_apiserver::storage::MemoryStorage;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::golden::exchange::{read, send};

const SERVICE: &str = "/api/v1/namespaces/default/services/kubernetes";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints/kubernetes";
const RANGE: &str = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";

async fn request(server: &ApiServer, method: &str, path: &str) -> Value {
    let request = json!({"method": method, "path": path});
    read(send(server.address(), &request).await.expect("a response")).await.expect("whole")["body"].clone()
}

#[tokio::test]
async fn it_leads_to_the_server() {
    let server = ApiServer::start().await.expect("the server starts");
    let service = request(&server, "GET", SERVICE).await;
    let port = server.address().port();
    assert_eq!(service["metadata"]["labels"], json!({"component": "apiserver", "provider": "kubernetes"}));
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.1");
    let https = json!([{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]);
    assert_eq!(service["spec"]["ports"], https);
    assert_eq!(service["metadata"]["managedFields"][0]["manager"], "kube-apiserver");
    let endpoints = request(&server, "GET", ENDPOINTS).await;
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    assert_eq!(endpoints["subsets"], json!([{"addresses": [{"ip": "127.0.0.1"}], "ports": ports}]));
    let slice = request(&server, "GET", SLICE).await;
    assert_eq!(slice["endpoints"], json!([{"addresses": ["127.0.0.1"], "conditions": {"ready": true}}]));
    assert_eq!((&slice["addressType"], &slice["ports"]), (&json!("IPv4"), &ports));
    assert_eq!(slice["metadata"]["labels"], json!({"kubernetes.io/service-name": "kubernetes"}));
    assert_eq!(request(&server, "GET", RANGE).await["spec"]["cidrs"], json!(["10.96.0.0/16"]));
}

#[tokio::test]
async fn it_is_created_again_after_a_delete() {
    let server = ApiServer::builder().garbage_collection(true).start().await.expect("the server starts");
    for path in [SERVICE, ENDPOINTS, SLICE, RANGE] {
        let before = request(&server, "GET", path).await;
        request(&server, "DELETE", path).await;
        let after = request(&server, "GET", path).await;
        assert_eq!(after["metadata"]["name"], "kubernetes", "{path}");
        assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"], "{path}");
    }
}

#[tokio::test]
async fn a_restarted_server_keeps_the_service_and_corrects_its_endpoints() {
    let storage = Arc::new(MemoryStorage::new());
    let start = async || {
        let builder = ApiServer::builder().storage(Arc::clone(&storage) as _);
        builder.start().await.expect("the server starts")
    };
    let first = start().await;
    let before = request(&first, "GET", SERVICE).await;
    let second = start().await;
    assert_eq!(request(&second, "GET", SERVICE).await["metadata"]["uid"], before["metadata"]["uid"]);
    let port = second.address().port();
    assert_ne!(port, first.address().port());
    assert_eq!(request(&second, "GET", ENDPOINTS).await["subsets"][0]["ports"][0]["port"], port);
    assert_eq!(request(&second, "GET", SLICE).await["ports"][0]["port"], port);
}
