//! Node ports of services.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::cluster::{Cluster, MERGE};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, ports: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": ports}})
}

fn port(service: &Value, i: usize) -> i64 {
    service["spec"]["ports"][i]["nodePort"].as_i64().unwrap_or_default()
}

fn why_invalid(response: (u16, Value)) -> String {
    assert_eq!(response.0, 422, "{}", response.1);
    response.1["details"]["causes"][0]["message"].as_str().expect("a cause").to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_port_belongs_to_one_service() {
    let c = Cluster::new().await;
    let named = json!([{"port": 80, "nodePort": 30_001}]);
    assert_eq!(c.post(SERVICES, service("a", named.clone())).await.0, 201);
    let taken = "Invalid value: 30001: provided port is already allocated";
    assert_eq!(why_invalid(c.post(SERVICES, service("b", named.clone())).await), taken);
    let (_, other) = c.post(SERVICES, service("b", json!([{"port": 80}]))).await;
    let path = format!("{SERVICES}/b");
    assert_eq!(why_invalid(c.patch(&path, MERGE, json!({"spec": {"ports": named}})).await), taken);
    // A service keeps its own port, and a deleted one releases it.
    assert_eq!(c.put(&format!("{SERVICES}/a"), service("a", named.clone())).await.0, 200);
    assert_eq!(c.delete(&format!("{SERVICES}/a"), Value::Null).await.0, 200);
    let (code, moved) = c.patch(&path, MERGE, json!({"spec": {"ports": named}})).await;
    assert_eq!((code, port(&moved, 0)), (200, 30_001), "{moved}");
    let free = json!([{"port": 80, "nodePort": port(&other, 0)}]);
    assert_eq!(c.post(SERVICES, service("c", free)).await.0, 201, "an update releases ports, too");
}

#[tokio::test(start_paused = true)]
async fn a_port_is_in_the_range() {
    let c = Cluster::new().await;
    for number in [29_999, 32_768, 80] {
        let ports = json!([{"port": 80, "nodePort": number}]);
        let why = format!(
            "Invalid value: {number}: provided port is not in the valid range. The range of valid ports is 30000-32767"
        );
        assert_eq!(why_invalid(c.post(SERVICES, service("a", ports)).await), why);
    }
}

#[tokio::test(start_paused = true)]
async fn every_service_gets_other_ports() {
    let c = Cluster::new().await;
    let mut seen = HashSet::new();
    for i in 0..300 {
        let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81},
            {"name": "c", "port": 81, "protocol": "UDP"}]);
        let (code, made) = c.post(SERVICES, service(&format!("s{i}"), ports)).await;
        assert_eq!(code, 201, "{made}");
        assert!((30_086..=32_767).contains(&port(&made, 0)), "{made}");
        assert_eq!(port(&made, 1), port(&made, 2), "one number for both protocols");
        assert!(seen.insert(port(&made, 0)) && seen.insert(port(&made, 1)), "{made}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_may_do_without_node_ports() {
    let c = Cluster::new().await;
    let mut balancer = service("a", json!([{"port": 80}]));
    balancer["spec"]["type"] = json!("LoadBalancer");
    balancer["spec"]["externalTrafficPolicy"] = json!("Local");
    let (_, made) = c.post(SERVICES, balancer.clone()).await;
    let health = made["spec"]["healthCheckNodePort"].as_i64().expect("a port for health checks");
    assert!(port(&made, 0) != 0 && health != 0 && port(&made, 0) != health, "{made}");
    let taken = json!([{"port": 80, "nodePort": health}]);
    assert_eq!(c.post(SERVICES, service("b", taken)).await.0, 422);
    balancer["metadata"]["name"] = json!("c");
    balancer["spec"]["allocateLoadBalancerNodePorts"] = json!(false);
    assert_eq!(port(&c.post(SERVICES, balancer).await.1, 0), 0);
}
