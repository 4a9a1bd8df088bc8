"""Budgets, endpoints, garbage collection, volumes, namespaces, accounts and certificates."""

import base64
import json
import subprocess

from cluster import check, condition, config_map, contains, equal, expect, path, pod, workload
from workloads import pods_of, running


def evict(n, name):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": n.name}}
    return n.cluster.request("POST", f"/api/v1/namespaces/{n.name}/pods/{name}/eviction", body)


@check
def a_budget_counts_its_pods(n):
    n.apply(workload("Deployment", "web", replicas=3))
    n.sh("create pdb web --selector=app=web --min-available=2")
    n.until("one disruption is allowed", lambda: path(n.get("pdb", "web"), "status.disruptionsAllowed") == 1)
    status = n.get("pdb", "web")["status"]
    equal((status["currentHealthy"], status["desiredHealthy"], status["expectedPods"]), (3, 2, 3))
    equal(condition(n.get("pdb", "web"), "DisruptionAllowed"), "True")


@check
def an_eviction_respects_the_budget(n):
    n.apply(workload("Deployment", "web", replicas=2))
    n.sh("create pdb web --selector=app=web --min-available=2")
    running(n, "web", 2)
    n.until("the budget is observed", lambda: path(n.get("pdb", "web"), "status.currentHealthy") == 2)
    name = pods_of(n, "web")[0]["metadata"]["name"]
    code, refused = evict(n, name)
    equal(
        (code, refused["reason"], refused["details"]["causes"][0]["reason"]),
        (429, "TooManyRequests", "DisruptionBudget"),
    )
    contains(refused["message"], "Cannot evict pod as it would violate the pod's disruption budget.")
    n.kubectl("patch", "pdb", "web", "-p", '{"spec":{"minAvailable":1}}')
    n.until("the eviction is allowed", lambda: evict(n, name)[0] == 201)
    n.until_gone("pod", name)


@check
def endpoint_slices_follow_ready_pods(n):
    n.apply(workload("Deployment", "web", replicas=2))
    n.sh("expose deployment web --port=80 --target-port=8080")
    running(n, "web", 2)

    def slices():
        return n.items("endpointslices", "-l", "kubernetes.io/service-name=web")

    def ready():
        found = [e for s in slices() for e in s["endpoints"] or [] if e["conditions"]["ready"]]
        return len(found) == 2 and found

    found = n.until("two endpoints", ready)
    equal({e["addresses"][0] for e in found}, {p["status"]["podIP"] for p in pods_of(n, "web")})
    equal(slices()[0]["ports"][0]["port"], 8080)
    n.until(
        "two addresses",
        lambda: len(path(n.get("endpoints", "web"), "subsets", [{}])[0].get("addresses", [])) == 2,
    )
    n.sh("scale deployment web --replicas=0")
    n.until("no endpoints", lambda: not any(s["endpoints"] for s in slices()))


@check
def unready_pods_are_no_ready_endpoints(n):
    n.apply(pod("web", labels={"app": "web", "unready": "yes"}))
    n.sh("create service clusterip web --tcp=80")

    def entry():
        return [e for s in n.items("endpointslices") for e in s["endpoints"] or []]

    n.until("an endpoint that is not ready", lambda: [e["conditions"]["ready"] for e in entry()] == [False])
    n.sh("label pod web unready-")
    n.until("it is ready", lambda: [e["conditions"]["ready"] for e in entry()] == [True])


@check
def a_headless_service_has_endpoints(n):
    n.apply(pod("web", labels={"app": "web"}))
    n.sh("create service clusterip web --clusterip=None --tcp=80")
    equal(n.get("service", "web")["spec"]["clusterIP"], "None")
    n.until("an endpoint", lambda: [e for s in n.items("endpointslices") for e in s["endpoints"] or []])
    equal(n.items("endpointslices")[0]["metadata"]["labels"]["service.kubernetes.io/headless"], "")


@check
def own_endpoints_are_mirrored(n):
    n.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "db"},
            "spec": {"ports": [{"port": 5432}]},
        },
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {"name": "db"},
            "subsets": [{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 5432}]}],
        },
    )
    slices = n.until("a slice", lambda: n.items("endpointslices", "-l", "kubernetes.io/service-name=db"))
    equal(slices[0]["endpoints"][0]["addresses"], ["192.0.2.7"])
    n.sh("delete endpoints db")
    n.until("no slice", lambda: not n.items("endpointslices"))


def owned_by(owner, **reference):
    kind, name, uid = owner["kind"], owner["metadata"]["name"], owner["metadata"]["uid"]
    return [{"apiVersion": owner["apiVersion"], "kind": kind, "name": name, "uid": uid, **reference}]


@check
def dependents_are_collected(n):
    n.apply(config_map("owner"))
    n.apply(config_map("child", ownerReferences=owned_by(n.get("configmap", "owner"))))
    n.apply(config_map("grandchild", ownerReferences=owned_by(n.get("configmap", "child"))))
    n.sh("delete configmap owner")
    n.until_gone("configmap", "grandchild")
    equal(n.get("configmap", "child"), None)


@check
def a_dependent_with_another_owner_stays(n):
    n.apply(config_map("one"), config_map("two"))
    both = owned_by(n.get("configmap", "one")) + owned_by(n.get("configmap", "two"))
    n.apply(
        config_map("child", ownerReferences=both),
        config_map("probe", ownerReferences=owned_by(n.get("configmap", "one"))),
    )
    n.sh("delete configmap one")
    n.until_gone("configmap", "probe")
    n.until("one owner", lambda: len(n.get("configmap", "child")["metadata"]["ownerReferences"]) == 1)


@check
def orphans_lose_their_owner(n):
    n.apply(config_map("owner"))
    n.apply(config_map("child", ownerReferences=owned_by(n.get("configmap", "owner"))))
    n.sh("delete configmap owner --cascade=orphan")
    n.until_gone("configmap", "owner")
    expect("ownerReferences" not in n.get("configmap", "child")["metadata"], "the reference remains")


@check
def a_blocking_dependent_delays_its_owner(n):
    n.apply(config_map("owner"))
    reference = owned_by(n.get("configmap", "owner"), blockOwnerDeletion=True)
    n.apply(config_map("child", ownerReferences=reference, finalizers=["example.com/hold"]))
    n.sh("delete configmap owner --cascade=foreground --wait=false")
    n.until("the child is deleted", lambda: "deletionTimestamp" in n.get("configmap", "child")["metadata"])
    expect(
        "foregroundDeletion" in n.get("configmap", "owner")["metadata"]["finalizers"],
        "the owner does not wait",
    )
    n.kubectl("patch", "configmap", "child", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    n.until_gone("configmap", "owner")


def volume(name, **spec):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name,
            "hostPath": {"path": "/tmp"},
            **spec,
        },
    }


def claim(name, storage_class, size="1Gi"):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
        },
    }


def bound(n, name):
    n.until(f"{name} is bound", lambda: path(n.get("pvc", name), "status.phase") == "Bound")


@check
def a_claim_binds_to_a_volume(n):
    n.afterwards("delete", "pv", n.name, "--wait=false")
    n.apply(claim("data", n.name))
    n.until("the claim is pending", lambda: path(n.get("pvc", "data"), "status.phase") == "Pending")
    n.apply(volume(n.name))
    bound(n, "data")
    equal(n.get("pvc", "data")["spec"]["volumeName"], n.name)
    equal(n.get("pvc", "data")["status"]["capacity"]["storage"], "2Gi")
    equal(
        (n.get("pv", n.name)["status"]["phase"], n.get("pv", n.name)["spec"]["claimRef"]["name"]),
        ("Bound", "data"),
    )


@check
def a_claim_needs_a_large_enough_volume(n):
    n.afterwards("delete", "pv", n.name, "--wait=false")
    n.apply(volume(n.name), claim("large", n.name, "3Gi"), claim("small", n.name))
    bound(n, "small")
    equal(n.get("pvc", "large")["status"]["phase"], "Pending")


@check
def a_retained_volume_is_released(n):
    n.afterwards("delete", "pv", n.name, "--wait=false")
    n.apply(volume(n.name), claim("data", n.name))
    bound(n, "data")
    n.sh("delete pvc data")
    n.until("Released", lambda: n.get("pv", n.name)["status"]["phase"] == "Released")
    n.kubectl("patch", "pv", n.name, "-p", '{"spec":{"claimRef":null}}')
    n.until("Available", lambda: n.get("pv", n.name)["status"]["phase"] == "Available")


@check
def a_claim_in_use_is_protected(n):
    n.apply(claim("data", n.name))
    n.until(
        "the finalizer",
        lambda: "kubernetes.io/pvc-protection" in n.get("pvc", "data")["metadata"].get("finalizers", []),
    )
    mount = {
        "nodeName": "node-1",
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    n.apply(pod("user", spec=mount))
    n.until("the pod runs", lambda: path(n.get("pod", "user"), "status.phase") == "Running")
    n.sh("delete pvc data --wait=false")
    n.until("Terminating", lambda: "deletionTimestamp" in n.get("pvc", "data")["metadata"])
    n.sh("delete pod user")
    n.until_gone("pvc", "data")


@check
def a_bound_volume_is_protected(n):
    n.apply(volume(n.name), claim("data", n.name))
    bound(n, "data")
    n.sh(f"delete pv {n.name} --wait=false")
    expect(n.get("pv", n.name), "the volume is gone")
    n.sh("delete pvc data")
    n.until_gone("pv", n.name)


@check
def an_ephemeral_volume_has_a_claim(n):
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": n.name,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]
    n.apply(pod("user", spec={"nodeName": "node-1", "volumes": volumes}))
    owner = n.until("the claim", lambda: n.get("pvc", "user-scratch"))["metadata"]["ownerReferences"][0]
    equal((owner["kind"], owner["name"]), ("Pod", "user"))
    n.sh("delete pod user")
    n.until_gone("pvc", "user-scratch")


@check
def a_resource_claim_is_made_of_its_template(n):
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpus"}}
    n.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "gpu"},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        }
    )
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}
    n.apply(pod("user", spec=claims, container={"resources": {"claims": [{"name": "gpu"}]}}))
    made = n.until("the claim", lambda: n.items("resourceclaims"))[0]
    equal(made["metadata"]["ownerReferences"][0]["name"], "user")
    equal(made["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"], "ExactCount")
    n.until("the pod names its claim", lambda: path(n.get("pod", "user"), "status.resourceClaimStatuses"))


@check
def a_new_namespace_has_an_account_and_the_certificate(n):
    expect(n.get("serviceaccount", "default"), "no service account")
    n.until("the certificate", lambda: n.get("configmap", "kube-root-ca.crt"))
    contains(n.get("configmap", "kube-root-ca.crt")["data"]["ca.crt"], "BEGIN CERTIFICATE")
    n.sh("delete configmap kube-root-ca.crt")
    n.until("it is created again", lambda: n.get("configmap", "kube-root-ca.crt"))


@check
def a_deleted_namespace_is_emptied(n):
    name = n.name + "-more"
    n.sh(f"create namespace {name}")
    held = config_map("held", finalizers=["example.com/hold"])
    held["metadata"]["namespace"] = name
    n.cluster.run(["create", "-f", "-"], stdin=json.dumps(held))
    n.cluster.run(["-n", name, "create", "configmap", "plain"])
    n.sh(f"delete namespace {name} --wait=false")
    n.until("Terminating", lambda: n.get("namespace", name)["status"]["phase"] == "Terminating")
    output = n.cluster.run(["-n", name, "create", "configmap", "late"], code=1)
    contains(output, f"unable to create new content in namespace {name} because it is being terminated")
    n.until(
        "the reason is reported",
        lambda: condition(n.get("namespace", name), "NamespaceFinalizersRemaining") == "True",
    )
    n.cluster.run(
        ["-n", name, "patch", "configmap", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}']
    )
    n.until_gone("namespace", name)


@check
def a_token_has_the_identity_of_its_account(n):
    n.sh("create serviceaccount robot")
    token = n.sh("create token robot --duration=20m").strip()
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    equal(claims["sub"], f"system:serviceaccount:{n.name}:robot")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}

    def status():
        return n.cluster.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)[1]["status"]

    equal((status()["authenticated"], status()["user"]["username"]), (True, claims["sub"]))
    expect(f"system:serviceaccounts:{n.name}" in status()["user"]["groups"], "the groups are missing")
    n.sh("delete serviceaccount robot")
    n.until("the token is invalid", lambda: not status().get("authenticated"))


@check
def a_token_ends_with_its_pod(n):
    n.apply(pod("user"))
    token = n.sh("create token default --bound-object-kind=Pod --bound-object-name=user").strip()
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}

    def status():
        return n.cluster.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)[1]["status"]

    equal(status()["user"]["extra"]["authentication.kubernetes.io/pod-name"], ["user"])
    n.sh("delete pod user")
    n.until("the token is invalid", lambda: not status().get("authenticated"))


@check
def a_token_secret_is_filled(n):
    n.sh("create serviceaccount robot")
    n.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "robot", "annotations": {"kubernetes.io/service-account.name": "robot"}},
            "type": "kubernetes.io/service-account-token",
        }
    )
    secret = n.until(
        "a token", lambda: path(n.get("secret", "robot"), "data.token") and n.get("secret", "robot")
    )
    equal(base64.b64decode(secret["data"]["namespace"]).decode(), n.name)
    n.sh("delete serviceaccount robot")
    n.until_gone("secret", "robot")


@check
def a_signing_request_gets_a_certificate(n):
    request = subprocess.run(
        [
            "openssl",
            "req",
            "-new",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            "/dev/null",
            "-subj",
            "/O=people/CN=jane",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    ).stdout
    n.afterwards("delete", "csr", n.name)
    n.apply(
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": n.name},
            "spec": {
                "request": base64.b64encode(request).decode(),
                "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["client auth"],
                "expirationSeconds": 3600,
            },
        }
    )
    contains(n.sh(f"get csr {n.name}"), "Pending")
    n.sh(f"certificate approve {n.name}")
    signed = n.until("a certificate", lambda: path(n.get("csr", n.name), "status.certificate"))
    contains(base64.b64decode(signed).decode(), "BEGIN CERTIFICATE")
    contains(n.sh(f"get csr {n.name}"), "Approved,Issued")
    denied = n.get("csr", n.name)
    denied["metadata"] = {"name": n.name + "-denied"}
    del denied["status"]
    n.afterwards("delete", "csr", n.name + "-denied")
    n.apply(denied)
    n.sh(f"certificate deny {n.name}-denied")
    contains(n.sh(f"get csr {n.name}-denied"), "Denied")


@check
def a_cluster_role_is_aggregated(n):
    label = f"check/{n.name}"
    n.afterwards("delete", "clusterrole", n.name, n.name + "-part")
    n.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": n.name},
            "rules": [],
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "yes"}}]},
        }
    )
    n.sh(f"create clusterrole {n.name}-part --verb=get --resource=pods")
    n.sh(f"label clusterrole {n.name}-part {label}=yes")
    rules = n.until("rules", lambda: n.get("clusterrole", n.name)["rules"])
    equal(rules, [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])


@check
def events_tell_what_happened(n):
    n.apply(workload("Deployment", "web", "missing:1"))
    n.until("the scheduler's event", lambda: n.items("events", "--field-selector", "reason=Scheduled"))
    contains(n.sh("events --for deployment/web"), "ScalingReplicaSet", "Scaled up replica set web-")
    contains(
        n.sh("get events --field-selector involvedObject.kind=Deployment,reason=ScalingReplicaSet"),
        "deployment/web",
    )
