"""The verbs of kubectl."""

import json

from cluster import check, config_map, contains, equal, expect, listed, pod, workload
from workloads import running


@check
def create_makes_every_kind(n):
    n.afterwards("delete", "clusterrole,clusterrolebinding,priorityclass", n.name)
    n.kubectl("create", "configmap", "settings", "--from-literal=a=1", "--from-file=" + n.files(b__txt="two"))
    equal(n.get("configmap", "settings")["data"], {"a": "1", "b.txt": "two"})
    n.sh("create secret generic keys --from-literal=password=x")
    equal(n.get("secret", "keys")["data"], {"password": "eA=="})
    n.sh("create secret docker-registry pull --docker-username=u --docker-password=p")
    equal(n.get("secret", "pull")["type"], "kubernetes.io/dockerconfigjson")
    n.sh("create serviceaccount robot")
    n.sh("create role reader --verb=get --resource=pods")
    n.sh(f"create rolebinding reader --role=reader --serviceaccount={n.name}:robot")
    n.sh(f"create clusterrole {n.name} --verb=get --resource=nodes")
    n.sh(f"create clusterrolebinding {n.name} --clusterrole={n.name} --user=jane")
    n.sh("create ingress web --rule=example.com/*=web:80")
    n.sh("create poddisruptionbudget web --selector=app=web --max-unavailable=1")
    n.kubectl("create", "job", "once", "--image=nginx", "--", "true")
    n.sh("create deployment web --image=nginx --port=80")
    contains(n.sh("get ingress"), "web", "example.com")
    contains(n.sh("get role,rolebinding"), "reader")


@check
def apply_says_what_changed(n):
    objects = [config_map("one", {"a": "1", "b": "2"}), config_map("two")]
    equal(n.apply(*objects).splitlines(), ["configmap/one created", "configmap/two created"])
    equal(n.apply(*objects).splitlines(), ["configmap/one unchanged", "configmap/two unchanged"])
    del objects[0]["data"]["b"]
    equal(n.apply(*objects).splitlines(), ["configmap/one configured", "configmap/two unchanged"])
    equal(n.get("configmap", "one")["data"], {"a": "1"})
    contains(n.sh("apply view-last-applied configmap/one"), 'a: "1"')
    n.sh("create configmap plain --from-literal=x=y")
    contains(
        n.apply(config_map("plain", {"x": "z"})),
        "missing the kubectl.kubernetes.io/last-applied-configuration annotation",
        "configured",
    )


@check
def apply_merges_lists_by_their_keys(n):
    web = workload("Deployment", "web", replicas=0)
    n.apply(web)
    n.kubectl(
        "patch",
        "deployment",
        "web",
        "-p",
        '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}',
    )
    web["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    n.apply(web)
    equal(
        {c["name"] for c in n.get("deployment", "web")["spec"]["template"]["spec"]["containers"]},
        {"main", "side"},
    )


@check
def apply_prunes(n):
    labelled = [config_map(name, labels={"set": "x"}) for name in ("keep", "drop")]
    n.apply(*labelled)
    output = n.sh(
        "apply -f - --prune -l set=x --prune-allowlist=core/v1/ConfigMap", stdin=listed(labelled[:1])
    )
    contains(output, "configmap/drop pruned")
    equal(n.get("configmap", "drop"), None)


@check
def apply_builds_kustomizations(n):
    directory = n.files(
        kustomization__yaml="namePrefix: dev-\nresources: [a.yaml]\n"
        "configMapGenerator: [{name: made, literals: [a=1]}]\n",
        a__yaml=json.dumps(config_map("plain")),
    )
    contains(n.kubectl("apply", "-k", directory), "configmap/dev-plain created", "configmap/dev-made-")
    n.kubectl("delete", "-k", directory)


@check
def apply_on_the_server_tracks_owners(n):
    mine = json.dumps(config_map("shared", {"a": "1", "b": "1"}))
    contains(
        n.sh("apply --server-side --field-manager=me -f -", stdin=mine), "configmap/shared serverside-applied"
    )
    yours = json.dumps(config_map("shared", {"a": "2"}))
    n.fails(
        "apply --server-side --field-manager=you -f -",
        'Apply failed with 1 conflict: conflict with "me": .data.a',
        stdin=yours,
    )
    n.sh("apply --server-side --field-manager=you --force-conflicts -f -", stdin=yours)
    equal(n.get("configmap", "shared")["data"], {"a": "2", "b": "1"})
    n.sh("apply --server-side --field-manager=me -f -", stdin=json.dumps(config_map("shared", {"c": "1"})))
    equal(n.get("configmap", "shared")["data"], {"a": "2", "c": "1"})
    managers = {
        m["manager"]
        for m in n.get("configmap", "shared", "--show-managed-fields")["metadata"]["managedFields"]
    }
    equal(managers, {"me", "you"})


@check
def client_side_apply_migrates_to_the_server(n):
    one = config_map("one", {"a": "1", "b": "1"})
    n.apply(one)
    del one["data"]["b"]
    n.sh("apply --server-side -f -", stdin=json.dumps(one))
    equal(n.get("configmap", "one")["data"], {"a": "1"})


@check
def diff_shows_changes(n):
    n.apply(config_map("one", {"a": "1"}))
    equal(n.sh("diff -f -", stdin=json.dumps(config_map("one", {"a": "1"}))), "")
    contains(
        n.sh("diff -f -", stdin=json.dumps(config_map("one", {"a": "2"})), code=1), '-  a: "1"', '+  a: "2"'
    )
    contains(
        n.sh("diff --server-side -f -", stdin=json.dumps(config_map("new", {"a": "2"})), code=1),
        "+  name: new",
    )


@check
def dry_runs_change_nothing(n):
    contains(n.sh("create configmap one --dry-run=server"), "configmap/one created (server dry run)")
    equal(n.get("configmap", "one"), None)
    n.sh("create configmap one")
    n.sh("label configmap one a=b --dry-run=server")
    n.sh("delete configmap one --dry-run=server")
    expect("labels" not in n.get("configmap", "one")["metadata"], "the label was written")
    contains(n.sh("run x --image=nginx --dry-run=server -o yaml"), "serviceAccountName: default", "uid:")


@check
def patch_knows_three_types(n):
    n.apply(workload("Deployment", "web", replicas=0))
    n.kubectl(
        "patch",
        "deployment",
        "web",
        "-p",
        '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"a:1"}]}}}}',
    )
    n.kubectl("patch", "deployment", "web", "--type=merge", "-p", '{"metadata":{"labels":{"x":"y"}}}')
    n.kubectl(
        "patch",
        "deployment",
        "web",
        "--type=json",
        "-p",
        '[{"op":"test","path":"/metadata/labels/x","value":"y"},{"op":"remove","path":"/metadata/labels/x"}]',
    )
    web = n.get("deployment", "web")
    equal(
        (web["spec"]["template"]["spec"]["containers"][0]["image"], web["metadata"]["labels"]),
        ("a:1", {"app": "web"}),
    )
    n.fails(
        ["patch", "deployment", "web", "--type=json", "-p", '[{"op":"remove","path":"/metadata/labels/no"}]'],
        "the server rejected our request due to an error in our request",
    )
    contains(
        n.kubectl("patch", "deployment", "web", "-p", '{"metadata":{"labels":{"app":"web"}}}'),
        "patched (no change)",
    )
    n.kubectl("patch", "pod", "none", "-p", "{}", code=1)


@check
def subresources_are_read_and_written(n):
    n.apply(workload("Deployment", "web", replicas=2))
    contains(n.sh("get deployment web --subresource=scale"), "DESIRED", "2")
    n.kubectl(
        "patch", "deployment", "web", "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":1}}'
    )
    running(n, "web", 1)
    n.apply(pod("sized", container={"resources": {"requests": {"cpu": "100m"}}}))
    n.sh("wait --for=condition=Ready pod/sized --timeout=60s")
    n.kubectl(
        "patch",
        "pod",
        "sized",
        "--subresource=resize",
        "-p",
        '{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"200m"}}}]}}',
    )
    equal(n.get("pod", "sized")["spec"]["containers"][0]["resources"]["requests"]["cpu"], "200m")


@check
def edit_writes_what_the_editor_leaves(n):
    n.apply(config_map("one", {"a": "before"}))
    n.sh("edit configmap one", environment={"KUBE_EDITOR": "sed -i s/before/after/"})
    equal(n.get("configmap", "one")["data"], {"a": "after"})
    contains(
        n.sh("edit configmap one", environment={"KUBE_EDITOR": "true"}), "Edit cancelled, no changes made"
    )


@check
def replace_replaces(n):
    n.apply(config_map("one", {"a": "1"}))
    n.sh("replace -f -", stdin=json.dumps(config_map("one", {"b": "1"})))
    equal(n.get("configmap", "one")["data"], {"b": "1"})
    before = n.get("configmap", "one")["metadata"]["uid"]
    n.sh("replace --force -f -", stdin=json.dumps(config_map("one", {"c": "1"})))
    expect(n.get("configmap", "one")["metadata"]["uid"] != before, "the uid is the old one")
    n.fails("replace -f -", "(NotFound)", stdin=json.dumps(config_map("none")))


@check
def labels_and_annotations_change(n):
    n.sh("create configmap one")
    n.sh("label configmap one a=1 b=2")
    n.fails("label configmap one a=2", "already has a value (1), and --overwrite is false")
    n.sh("label configmap one a=2 --overwrite")
    n.sh("label configmap one b-")
    n.sh("annotate configmap --all note=hello")
    metadata = n.get("configmap", "one")["metadata"]
    equal((metadata["labels"], metadata["annotations"]), ({"a": "2"}, {"note": "hello"}))
    contains(n.sh("label configmap one --list"), "a=2")


@check
def set_changes_a_template(n):
    n.sh("create deployment web --image=nginx --replicas=0")
    n.sh("create serviceaccount robot")
    n.sh("set env deployment/web A=1 B=2")
    n.sh("set resources deployment/web --requests=cpu=10m --limits=memory=10Mi")
    n.sh("set serviceaccount deployment/web robot")
    spec = n.get("deployment", "web")["spec"]["template"]["spec"]
    equal(
        (spec["containers"][0]["env"], spec["serviceAccountName"]),
        ([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "robot"),
    )
    contains(n.sh("set env deployment/web --list"), "A=1")
    n.sh("create service clusterip web --tcp=80")
    n.sh("set selector service web app=other")
    equal(n.get("service", "web")["spec"]["selector"], {"app": "other"})


@check
def expose_makes_a_service(n):
    n.apply(workload("Deployment", "web", container={"ports": [{"containerPort": 8080}]}))
    n.sh("expose deployment web --type=NodePort")
    service = n.get("service", "web")["spec"]
    equal(
        (service["selector"], service["ports"][0]["port"], service["type"]),
        ({"app": "web"}, 8080, "NodePort"),
    )


@check
def get_prints_in_many_forms(n):
    n.apply(config_map("b", {"x": "1"}, labels={"l": "1"}), config_map("a", {"x": "2"}))
    contains(n.sh("get configmap a b -o name"), "configmap/a", "configmap/b")
    equal(n.kubectl("get", "configmap", "a", "-o", "jsonpath={.data.x}"), "2")
    equal(n.kubectl("get", "configmap", "a", "-o", "go-template={{.data.x}}"), "2")
    contains(
        n.kubectl("get", "configmap", "-o", "custom-columns=N:.metadata.name,X:.data.x"), "N ", "a ", "2"
    )
    equal(n.kubectl("get", "configmap", "-l", "l=1", "-o", "name"), "configmap/b\n")
    equal(n.kubectl("get", "configmap", "--field-selector", "metadata.name=a", "-o", "name"), "configmap/a\n")
    order = n.kubectl("get", "configmap", "a", "b", "--sort-by=.data.x", "-o", "name")
    equal(order, "configmap/b\nconfigmap/a\n")
    contains(n.sh("get configmap --show-labels"), "LABELS", "l=1")
    contains(n.sh("get configmap --chunk-size=1"), "a ", "b ")
    contains(n.kubectl("get", "configmap", "-L", "l"), " L")
    n.fails("get configmap none", 'Error from server (NotFound): configmaps "none" not found')
    n.fails("get nothing", 'the server doesn\'t have a resource type "nothing"')
    contains(n.sh("get pods"), f"No resources found in {n.name} namespace.")
    contains(n.sh("get configmap -A"), "NAMESPACE", n.name)


@check
def get_watches(n):
    n.sh("create configmap one")
    output = n.kubectl(
        "get", "configmap", "one", "--watch", "--output-watch-events", "--request-timeout=2s", code=None
    )
    contains(output, "ADDED", "one")


@check
def get_all_lists_workloads(n):
    n.apply(workload("Deployment", "web"))
    n.sh("create service clusterip web --tcp=80")
    running(n, "web", 1)
    contains(n.sh("get all"), "pod/web-", "service/web", "deployment.apps/web", "replicaset.apps/web-")
    contains(n.sh("get deployment web -o wide"), "SELECTOR", "app=web", "1/1")
    contains(n.sh("get pods -o wide"), "NODE", "Running", "node-")


@check
def describe_shows_objects(n):
    n.apply(workload("Deployment", "web", container={"image": "nginx:7"}))
    n.sh("expose deployment web --port=80")
    n.rolled_out("deployment/web")
    contains(n.sh("describe deployment web"), "nginx:7", "NewReplicaSet:", "ScalingReplicaSet")
    contains(
        n.sh("describe pods -l app=web"),
        "Controlled By:  ReplicaSet/web-",
        "Ready             True",
        "Scheduled",
    )
    n.until(
        "the endpoint", lambda: ":80" in n.sh("describe service web").split("Endpoints:")[1].splitlines()[0]
    )
    contains(n.sh(f"describe namespace {n.name}"), "Active", "No resource quota")
    contains(n.sh("describe node node-1"), "Ready", "KubeletReady", "Allocatable:")


@check
def wait_waits(n):
    n.apply(pod("user"))
    n.sh("wait --for=condition=Ready pod/user --timeout=60s")
    n.kubectl("wait", "pod/user", "--for=jsonpath={.status.phase}=Running", "--timeout=10s")
    n.sh("wait --for=create pod/user --timeout=5s")
    n.fails(
        "wait --for=condition=Never pod/user --timeout=1s", "timed out waiting for the condition on pods/user"
    )
    n.sh("delete pod user --wait=false")
    n.sh("wait --for=delete pod/user --timeout=60s")
    n.fails("wait --for=condition=Ready pod/user --timeout=1s", 'pods "user" not found')


@check
def explain_explains(n):
    contains(n.sh("explain pods.spec.containers.image"), "KIND:       Pod", "FIELD: image <string>")
    contains(n.sh("explain deployments --recursive"), "replicas\t<integer>")
    contains(n.sh("explain hpa --api-version=autoscaling/v1"), "VERSION:    v1")
    n.fails("explain pods.nothing", 'field "nothing" does not exist')


@check
def the_cluster_describes_itself(n):
    contains(n.sh("api-resources"), "po ", "deployments", "crd,crds")
    contains(n.sh("api-resources --verbs=list --namespaced -o name"), "deployments.apps")
    contains(n.sh("api-versions"), "apps/v1", "networking.k8s.io/v1")
    contains(n.sh("version"), "Server Version: v1.36")
    contains(n.sh("cluster-info"), "Kubernetes control plane")
    equal(n.sh("get --raw /healthz"), "ok")
    contains(n.sh("get --raw /readyz?verbose"), "[+]ping ok")
    contains(n.sh("get --raw /metrics"), "apiserver_request_total")
    contains(n.sh("get --raw /openapi/v2"), "io.k8s.api.core.v1.Pod")


@check
def auth_answers(n):
    equal(n.sh("auth can-i create pods").strip(), "yes")
    contains(n.sh("auth can-i --list"), "Resources")
    contains(n.sh("auth whoami"), "Username")
    contains(n.sh("auth whoami --as=jane --as-group=people"), "jane", "people")
    contains(
        n.sh(f"auth whoami --as=system:serviceaccount:{n.name}:default"),
        f"system:serviceaccount:{n.name}:default",
    )


@check
def debug_adds_a_container(n):
    n.apply(pod("user"))
    n.sh("wait --for=condition=Ready pod/user --timeout=60s")
    n.sh("debug user --image=busybox --container=look --attach=false")
    added = n.get("pod", "user")["spec"]["ephemeralContainers"][0]
    equal((added["name"], added["image"]), ("look", "busybox"))
    n.sh("debug user --copy-to=copy --image=busybox --attach=false")
    equal(len(n.get("pod", "copy")["spec"]["containers"]), 2)
    n.sh("debug node/node-1 --image=busybox --attach=false")
    n.until(
        "a pod on the node", lambda: [p for p in n.names("pods") if p.startswith("node-debugger-node-1-")]
    )


@check
def run_starts_a_pod(n):
    n.sh("run web --image=nginx --port=80 --labels=a=b --env=X=1 --expose")
    n.sh("wait --for=condition=Ready pod/web --timeout=60s")
    equal(n.get("service", "web")["spec"]["selector"], {"a": "b"})
    n.kubectl("run", "once", "--image=nginx", "--restart=Never", "--command", "--", "true")
    n.kubectl("wait", "pod/once", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
    n.fails("run web --image=nginx", "(AlreadyExists)", 'pods "web" already exists')


@check
def delete_selects_and_forces(n):
    n.apply(
        *[
            pod(name, labels={"l": name[0]}, spec={"terminationGracePeriodSeconds": 600})
            for name in ("a1", "a2", "b1", "c1")
        ]
    )
    n.sh("delete pods -l l=a")
    n.sh("delete pod b1 --now")
    n.sh("delete pod c1 --grace-period=0 --force")
    equal(n.names("pods"), [])
    n.apply(config_map("one"), config_map("two"))
    n.sh("delete configmap --all")
    n.fails("delete configmap one", "(NotFound)")
    n.sh("delete configmap one --ignore-not-found")
    n.sh("delete -f - --ignore-not-found", stdin=json.dumps(config_map("two")))


@check
def top_needs_a_metrics_server(n):
    n.fails("top pods", "Metrics API not available")
    n.fails("top nodes", "Metrics API not available")


@check
def names_are_generated(n):
    generated = config_map("x")
    generated["metadata"] = {"generateName": "made-"}
    output = n.sh("create -f -", stdin=json.dumps(generated))
    contains(output, "configmap/made-")
    n.create(generated)
    equal(len([name for name in n.names("configmap") if name.startswith("made-")]), 2)


@check
def columns_of_resources_are_those_of_the_server(n):
    for resource, column in [
        ("nodes", "VERSION"),
        ("namespaces", "STATUS"),
        ("endpointslices", "ADDRESSTYPE"),
        ("leases", "HOLDER"),
        ("pdb", "MIN AVAILABLE"),
        ("serviceaccounts", "AGE"),
        ("storageclasses", "PROVISIONER"),
        ("priorityclasses", "GLOBAL-DEFAULT"),
        ("controllerrevisions", "REVISION"),
    ]:
        output = n.kubectl("get", resource, "-A")
        if "No resources found" not in output:
            contains(output, column)
    n.sh("create quota q --hard=pods=1")
    contains(n.sh("get quota"), "REQUEST", "pods: 0/1")
