//! Addresses and node ports of Services: each belongs to one of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::cluster::{Cluster, MERGE};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    if spec["ports"].is_null() {
        spec["ports"] = json!([{"port": 80}]);
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn causes(status: &Value) -> Vec<String> {
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    causes.map(|cause| format!("{}: {}", text(&cause["field"]), text(&cause["message"]))).collect()
}

#[tokio::test(start_paused = true)]
async fn an_address_belongs_to_one_service() {
    let c = Cluster::new().await;
    let mut addresses = BTreeSet::new();
    for i in 0..300 {
        let (code, made) = c.post(SERVICES, service(&format!("s{i}"), json!({}))).await;
        assert_eq!(code, 201, "{made}");
        let address = made["spec"]["clusterIP"].as_str().expect("an address").to_owned();
        assert_eq!(made["spec"]["clusterIPs"], json!([address]));
        assert!(address.starts_with("10.96.") && addresses.insert(address), "{made}");
    }
    let fixed = |name: &str| service(name, json!({"clusterIP": "10.96.200.200"}));
    assert_eq!(c.post(SERVICES, fixed("first")).await.0, 201);
    let (code, status) = c.post(SERVICES, fixed("second")).await;
    assert_eq!(code, 422, "{status}");
    assert_eq!(
        causes(&status),
        [
            r#"spec.clusterIPs: Invalid value: ["10.96.200.200"]: failed to allocate IP 10.96.200.200: provided IP is already allocated"#
        ]
    );
    // It is free again after a delete, and any number of Services have none.
    assert_eq!(c.delete(&format!("{SERVICES}/first"), Value::Null).await.0, 200);
    assert_eq!(c.post(SERVICES, fixed("second")).await.0, 201);
    for name in ["headless-a", "headless-b"] {
        assert_eq!(c.post(SERVICES, service(name, json!({"clusterIP": "None"}))).await.0, 201);
    }
    for name in ["name-a", "name-b"] {
        let external = service(name, json!({"type": "ExternalName", "externalName": "a.example.com"}));
        let (code, made) = c.post(SERVICES, external).await;
        assert_eq!((code, &made["spec"]["clusterIP"]), (201, &Value::Null));
    }
}

#[tokio::test(start_paused = true)]
async fn node_ports_are_assigned_and_belong_to_one_service() {
    let c = Cluster::new().await;
    let mut ports = BTreeSet::new();
    let two = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    for i in 0..200 {
        let made =
            c.post(SERVICES, service(&format!("s{i}"), json!({"type": "NodePort", "ports": two}))).await.1;
        for port in made["spec"]["ports"].as_array().expect("ports") {
            let number = port["nodePort"].as_i64().expect("a node port");
            assert!((30_000..=32_767).contains(&number) && ports.insert(number), "{made}");
        }
    }
    let taken = *ports.first().expect("a port");
    let with = |port: i64| json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
    let (code, status) = c.post(SERVICES, service("x", with(taken))).await;
    let field = "spec.ports[0].nodePort: Invalid value";
    assert_eq!(code, 422, "{status}");
    assert_eq!(causes(&status), [format!("{field}: {taken}: provided port is already allocated")]);
    let (code, status) = c.post(SERVICES, service("x", with(80))).await;
    assert_eq!(code, 422, "{status}");
    let why = "provided port is not in the valid range. The range of valid ports is 30000-32767";
    assert_eq!(causes(&status), [format!("{field}: 80: {why}")]);
    // An update keeps its ports, may take a free one, and not that of another Service.
    assert_eq!(c.post(SERVICES, service("x", json!({}))).await.0, 201);
    let path = format!("{SERVICES}/x");
    let (code, node_port) = c.patch(&path, MERGE, json!({"spec": {"type": "NodePort"}})).await;
    assert_eq!(code, 200, "{node_port}");
    let assigned = node_port["spec"]["ports"][0]["nodePort"].as_i64().expect("a node port");
    assert!(!ports.contains(&assigned), "{assigned}");
    let (code, same) = c.put(&path, node_port.clone()).await;
    assert_eq!((code, &same["spec"]), (200, &node_port["spec"]));
    assert_eq!(c.patch(&path, MERGE, json!({"spec": with(taken)})).await.0, 422);
    let free = (30_000..).find(|port| !ports.contains(port) && *port != assigned).expect("a free port");
    assert_eq!(c.patch(&path, MERGE, json!({"spec": with(free)})).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn load_balancers_have_node_ports_unless_they_decline() {
    let c = Cluster::new().await;
    let (_, made) = c.post(SERVICES, service("a", json!({"type": "LoadBalancer"}))).await;
    assert_eq!(made["spec"]["allocateLoadBalancerNodePorts"], true);
    assert!(made["spec"]["ports"][0]["nodePort"].is_i64(), "{made}");
    let declined = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false});
    let (code, made) = c.post(SERVICES, service("b", declined)).await;
    assert_eq!((code, &made["spec"]["ports"][0]["nodePort"]), (201, &Value::Null), "{made}");
    let dns = json!([{"name": "udp", "port": 53, "protocol": "UDP"}, {"name": "tcp", "port": 53}]);
    let (_, both) = c.post(SERVICES, service("dns", json!({"type": "NodePort", "ports": dns}))).await;
    let ports = &both["spec"]["ports"];
    assert_eq!(ports[0]["nodePort"], ports[1]["nodePort"], "two protocols share a port: {ports}");
    // A port that is named is still respected.
    let named = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{"port": 80, "nodePort": 31234}]});
    let (_, made) = c.post(SERVICES, service("c", named)).await;
    assert_eq!(made["spec"]["ports"][0]["nodePort"], 31234);
    let local = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"});
    let (_, made) = c.post(SERVICES, service("d", local)).await;
    let health = made["spec"]["healthCheckNodePort"].as_i64().expect("a port for health checks");
    assert_ne!(Some(health), made["spec"]["ports"][0]["nodePort"].as_i64());
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "a.example.com"}]}}});
    let (code, written) = c.patch(&format!("{SERVICES}/d/status"), MERGE, status).await;
    assert_eq!(code, 200, "{written}");
    let ingress = &written["status"]["loadBalancer"]["ingress"];
    assert_eq!(*ingress, json!([{"ip": "192.0.2.1", "ipMode": "VIP"}, {"hostname": "a.example.com"}]));
}

/// Many clients at once never get the same address.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn addresses_stay_distinct_under_concurrent_creates() {
    let c = Cluster::new().await;
    let makers: Vec<_> = (0..4)
        .map(|maker| {
            let c = Cluster { server: c.server.clone(), client: c.server.client() };
            tokio::spawn(async move {
                for i in 0..25 {
                    let name = format!("s{maker}-{i}");
                    let (code, made) = c.post(SERVICES, service(&name, json!({"type": "NodePort"}))).await;
                    assert_eq!(code, 201, "{made}");
                }
            })
        })
        .collect();
    for maker in makers {
        maker.await.expect("no maker panics");
    }
    let (_, list) = c.get(SERVICES).await;
    let items = list["items"].as_array().expect("items");
    let addresses: BTreeSet<&str> = items.iter().filter_map(|s| s["spec"]["clusterIP"].as_str()).collect();
    let ports: BTreeSet<i64> =
        items.iter().filter_map(|s| s["spec"]["ports"][0]["nodePort"].as_i64()).collect();
    assert_eq!((items.len(), addresses.len(), ports.len()), (100, 100, 100));
}

/// An address of another family would be no effect of what was sent.
#[tokio::test(start_paused = true)]
async fn the_families_of_a_service_are_those_of_the_server() {
    let c = Cluster::new().await;
    let rejected = async |spec: Value| {
        let (code, status) = c.post(SERVICES, service("x", spec)).await;
        assert_eq!(code, 422, "{status}");
        causes(&status)
    };
    assert_eq!(
        rejected(json!({"ipFamilies": ["IPv6"]})).await,
        [r#"spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster"#]
    );
    assert_eq!(
        rejected(json!({"ipFamilyPolicy": "RequireDualStack"})).await,
        [
            r#"spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services"#
        ]
    );
    assert_eq!(
        rejected(json!({"clusterIP": "fd00::1"})).await,
        [r#"spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster"#]
    );
    let preferred = service("preferred", json!({"ipFamilyPolicy": "PreferDualStack"}));
    let (code, made) = c.post(SERVICES, preferred).await;
    assert_eq!((code, &made["spec"]["ipFamilies"]), (201, &json!(["IPv4"])), "{made}");
    // Endpoints of a service without address and selector may be of any family.
    let headless = json!({"clusterIP": "None", "ipFamilies": ["IPv6"], "ipFamilyPolicy": "SingleStack"});
    assert_eq!(c.post(SERVICES, service("headless", headless.clone())).await.0, 201);
    let mut selecting = headless;
    selecting["selector"] = json!({"a": "b"});
    assert_eq!(rejected(selecting).await.len(), 1);
    let (_, plain) = c.post(SERVICES, service("plain", json!({}))).await;
    let path = format!("{SERVICES}/plain");
    let dual = json!({"spec": {"ipFamilyPolicy": "RequireDualStack"}});
    assert_eq!(c.patch(&path, MERGE, dual).await.0, 422);
    assert_eq!(c.get(&path).await.1["spec"], plain["spec"]);
}
