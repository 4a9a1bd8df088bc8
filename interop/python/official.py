"""The official client: typed and dynamic API, watches, the shared informer."""

import logging
import threading

from kubernetes import client, config, dynamic, informer, watch
from kubernetes.client import exceptions

import checks
from checks import NAMESPACE, config_map, deployment, equal, eventually, rejected

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

# The client logs every watch that is cut.
logging.getLogger("kubernetes").setLevel(logging.CRITICAL)
config.load_kube_config()
core = client.CoreV1Api()
apps = client.AppsV1Api()
custom = client.CustomObjectsApi()
extensions = client.ApiextensionsV1Api()


def fault(path):
    """Injects a fault with the endpoints of `serve --fault-endpoints`."""
    api = client.ApiClient()
    request = api.param_serialize("POST", f"/faults/{path}", auth_settings=["BearerToken"])
    equal(api.call_api(*request).status, 200)


def create(name, data=None, **labels):
    """Creates a ConfigMap."""
    return core.create_namespaced_config_map(NAMESPACE, config_map(name, data, **labels))


def patch(name, body, content_type, **options):
    """Patches a ConfigMap."""
    return core.patch_namespaced_config_map(
        name, NAMESPACE, body, _content_type=content_type, **options
    )


def create_and_get():
    """create, get, not found, already exists"""
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    created = create("first", {"a": "1"}, app="first")
    found = core.read_namespaced_config_map("first", NAMESPACE)
    equal(found, created)
    equal(found.data, {"a": "1"})
    missing = lambda: core.read_namespaced_config_map("missing", NAMESPACE)
    rejected(exceptions.NotFoundException, missing, 404, "NotFound")
    rejected(exceptions.ConflictException, lambda: create("first"), 409, "AlreadyExists")


def invalid():
    """invalid objects: 422 with causes; dry run"""
    body = deployment("invalid")
    body["spec"]["template"]["spec"]["containers"][0]["name"] = "Not A Name"
    call = lambda: apps.create_namespaced_deployment(NAMESPACE, body)
    error = rejected(exceptions.UnprocessableEntityException, call, 422, "Invalid")
    assert "spec.template.spec.containers[0].name" in error.body, error.body
    core.create_namespaced_config_map(NAMESPACE, config_map("dry"), dry_run="All")
    missing = lambda: core.read_namespaced_config_map("dry", NAMESPACE)
    rejected(exceptions.NotFoundException, missing, 404, "NotFound")


def selectors():
    """lists with label and field selectors"""
    for index in range(4):
        create(f"select-{index}", part="even" if index % 2 == 0 else "odd", of="select")
    names = lambda **options: [
        item.metadata.name for item in core.list_namespaced_config_map(NAMESPACE, **options).items
    ]
    equal(names(label_selector="of=select,part=even"), ["select-0", "select-2"])
    equal(names(label_selector="of in (select),part!=even"), ["select-1", "select-3"])
    equal(names(field_selector="metadata.name=select-3"), ["select-3"])
    call = lambda: names(field_selector="data.a=1")
    rejected(exceptions.BadRequestException, call, 400, "BadRequest")


def pages():
    """lists in pages, with a continue token that expires"""
    for index in range(5):
        create(f"page-{index}", of="pages")
    token, names, remaining = None, [], []
    while token != "":
        page = core.list_namespaced_config_map(NAMESPACE, limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        remaining.append(page.metadata.remaining_item_count)
        token = page.metadata._continue or ""
    everything = core.list_namespaced_config_map(NAMESPACE)
    equal(names, [item.metadata.name for item in everything.items])
    equal(remaining[-1], None)
    equal(remaining[0], len(names) - 2)
    token = core.list_namespaced_config_map(NAMESPACE, limit=2).metadata._continue
    create("page-5", of="pages")
    fault("compact")
    expired = lambda: core.list_namespaced_config_map(NAMESPACE, limit=2, _continue=token)
    rejected(exceptions.ApiException, expired, 410, "Expired")


def conflict():
    """update, and the conflict of an update with an old version"""
    old = create("update", {"a": "1"})
    changed = core.read_namespaced_config_map("update", NAMESPACE)
    changed.data["a"] = "2"
    updated = core.replace_namespaced_config_map("update", NAMESPACE, changed)
    assert updated.metadata.resource_version != old.metadata.resource_version
    old.data["a"] = "3"
    call = lambda: core.replace_namespaced_config_map("update", NAMESPACE, old)
    rejected(exceptions.ConflictException, call, 409, "Conflict")


def patches():
    """merge, JSON and strategic merge patches"""
    create("patch", {"a": "1", "b": "1"})
    equal(patch("patch", {"data": {"a": None, "c": "1"}}, MERGE).data, {"b": "1", "c": "1"})
    operations = [
        {"op": "test", "path": "/data/b", "value": "1"},
        {"op": "replace", "path": "/data/b", "value": "2"},
    ]
    equal(patch("patch", operations, JSON_PATCH).data, {"b": "2", "c": "1"})
    failing = lambda: patch("patch", operations, JSON_PATCH)
    rejected(exceptions.UnprocessableEntityException, failing, 422, "Invalid")
    apps.create_namespaced_deployment(NAMESPACE, deployment("strategic"))
    second = {"name": "second", "image": "second:1"}
    body = {"spec": {"template": {"spec": {"containers": [second]}}}}
    patched = apps.patch_namespaced_deployment(
        "strategic", NAMESPACE, body, _content_type=STRATEGIC
    )
    containers = patched.spec.template.spec.containers
    equal([container.name for container in containers], ["second", "main"])


def apply():
    """server-side apply: managers, conflict, force"""
    applied = patch("apply", config_map("apply", {"a": "1"}), APPLY, field_manager="one")
    equal([entry.manager for entry in applied.metadata.managed_fields], ["one"])
    equal(applied.metadata.managed_fields[0].operation, "Apply")
    other = config_map("apply", {"a": "2"})
    call = lambda: patch("apply", other, APPLY, field_manager="two")
    error = rejected(exceptions.ConflictException, call, 409, "Conflict")
    assert '"field":".data.a"' in error.body, error.body
    forced = patch("apply", other, APPLY, field_manager="two", force=True)
    equal(forced.data, {"a": "2"})
    removed = patch("apply", config_map("apply"), APPLY, field_manager="two")
    equal(removed.data, None)


def status_and_scale():
    """status and scale of a Deployment"""
    apps.create_namespaced_deployment(NAMESPACE, deployment("scaled", 2))
    body = {"status": {"replicas": 2, "observedGeneration": 1}, "spec": {"replicas": 9}}
    updated = apps.patch_namespaced_deployment_status(
        "scaled", NAMESPACE, body, _content_type=MERGE
    )
    equal((updated.status.replicas, updated.spec.replicas), (2, 2))
    scale = apps.read_namespaced_deployment_scale("scaled", NAMESPACE)
    equal((scale.spec.replicas, scale.status.selector), (2, "app=scaled"))
    scale.spec.replicas = 5
    apps.replace_namespaced_deployment_scale("scaled", NAMESPACE, scale)
    equal(apps.read_namespaced_deployment("scaled", NAMESPACE).spec.replicas, 5)


def propagation():
    """delete in the background, in the foreground, and with orphans"""
    for policy in ["Background", "Foreground", "Orphan"]:
        owner = create(f"owner-{policy.lower()}")
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
            "blockOwnerDeletion": True,
        }
        name = f"dependent-{policy.lower()}"
        body = config_map(name)
        body["metadata"]["ownerReferences"] = [reference]
        core.create_namespaced_config_map(NAMESPACE, body)
        core.delete_namespaced_config_map(
            owner.metadata.name, NAMESPACE, propagation_policy=policy
        )
        names = lambda: [
            item.metadata.name for item in core.list_namespaced_config_map(NAMESPACE).items
        ]
        eventually(lambda: owner.metadata.name not in names(), f"{policy}: owner deleted")
        if policy == "Orphan":
            dependent = core.read_namespaced_config_map(name, NAMESPACE)
            equal(dependent.metadata.owner_references, None)
        else:
            eventually(lambda: name not in names(), f"{policy}: dependent deleted")


def collection():
    """delete of a collection by selector, and of a pod"""
    selector = {"label_selector": "of=select"}
    core.delete_collection_namespaced_config_map(NAMESPACE, **selector)
    equal(core.list_namespaced_config_map(NAMESPACE, **selector).items, [])
    pod = {"metadata": {"name": "pod"}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    core.create_namespaced_pod(NAMESPACE, pod)
    deleted = core.delete_namespaced_pod("pod", NAMESPACE)
    assert deleted.metadata.deletion_timestamp, deleted
    eventually(lambda: not core.list_namespaced_pod(NAMESPACE).items, "pod removed")


def watches():
    """watch from a version, and 410 from an expired one"""
    version = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    create("watched", {"a": "1"})
    patch("watched", {"data": {"a": "2"}}, MERGE)
    core.delete_namespaced_config_map("watched", NAMESPACE)
    stream, seen = watch.Watch(), []
    events = stream.stream(
        core.list_namespaced_config_map,
        NAMESPACE,
        resource_version=version,
        field_selector="metadata.name=watched",
        timeout_seconds=checks.TIMEOUT,
    )
    for event in events:
        seen.append((event["type"], event["object"].data["a"]))
        if event["type"] == "DELETED":
            stream.stop()
    equal(seen, [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")])
    fault("forget-window")
    options = {"resource_version": version, "timeout_seconds": checks.TIMEOUT}
    expired = watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, **options)
    try:
        next(expired)
    except exceptions.ApiException as error:
        equal(error.status, 410)
    else:
        raise AssertionError("an expired version was accepted")


def shared_informer():
    """shared informer: events, cut watches, an expired version"""
    seen, lock = [], threading.Lock()

    def record(kind):
        def handler(item):
            with lock:
                seen.append((kind, item.metadata.name, (item.data or {}).get("a")))

        return handler

    subject = informer.SharedInformer(
        core.list_namespaced_config_map, namespace=NAMESPACE, label_selector="of=informer"
    )
    for kind in [informer.ADDED, informer.MODIFIED, informer.DELETED]:
        subject.add_event_handler(kind, record(kind))
    create("informer-1", {"a": "1"}, of="informer")
    subject.start()
    received = lambda *event: eventually(lambda: event in seen, f"{event} in {seen}")
    received("ADDED", "informer-1", "1")
    patch("informer-1", {"data": {"a": "2"}}, MERGE)
    received("MODIFIED", "informer-1", "2")
    fault("cut-watches")
    create("informer-2", {"a": "1"}, of="informer")
    received("ADDED", "informer-2", "1")
    # The informer misses the delete, and its version has expired when it watches again.
    fault("stall-watches?on=true")
    core.delete_namespaced_config_map("informer-1", NAMESPACE)
    fault("forget-window")
    fault("stall-watches?on=false")
    received("DELETED", "informer-1", "2")
    equal(subject.cache.list_keys(), [f"{NAMESPACE}/informer-2"])
    # This client can only be stopped while it watches.
    create("informer-3", {"a": "1"}, of="informer")
    received("ADDED", "informer-3", "1")
    subject.stop()


def custom_resources():
    """CRD, and custom objects with status and scale"""
    crd = checks.widget_crd()
    extensions.create_custom_resource_definition(crd)
    name = crd["metadata"]["name"]

    def established():
        conditions = extensions.read_custom_resource_definition(name).status.conditions or []
        return any(it.type == "Established" and it.status == "True" for it in conditions)

    eventually(established, "CRD established")
    kind = ("interop.example", "v1", NAMESPACE, "widgets")
    custom.create_namespaced_custom_object(*kind, checks.widget("one", 1))
    small = lambda: custom.create_namespaced_custom_object(*kind, checks.widget("zero", 0))
    error = rejected(exceptions.UnprocessableEntityException, small, 422, "Invalid")
    assert "spec.size" in error.body, error.body
    body = {"spec": {"size": 2}}
    patched = custom.patch_namespaced_custom_object(*kind, "one", body, _content_type=MERGE)
    equal(patched["spec"]["size"], 2)
    body = {"status": {"replicas": 3}}
    custom.patch_namespaced_custom_object_status(*kind, "one", body, _content_type=MERGE)
    body = {"spec": {"replicas": 3}}
    scale = custom.patch_namespaced_custom_object_scale(*kind, "one", body, _content_type=MERGE)
    equal((scale["spec"]["replicas"], scale["status"]["replicas"]), (3, 3))
    equal(len(custom.list_namespaced_custom_object(*kind)["items"]), 1)


def dynamic_client():
    """dynamic client: discovery, apply, strict validation, watch, its exceptions"""
    resources = dynamic.DynamicClient(client.ApiClient()).resources
    widgets = resources.get(api_version="interop.example/v1", kind="Widget")
    applied = widgets.server_side_apply(
        checks.widget("two", 2), namespace=NAMESPACE, field_manager="dynamic"
    )
    equal(applied.spec.size, 2)
    unknown = checks.widget("three", 3)
    unknown["spec"]["sise"] = 3
    options = {"namespace": NAMESPACE, "query_params": [("fieldValidation", "Strict")]}
    strict = lambda: widgets.create(unknown, **options)
    rejected(dynamic.exceptions.BadRequestError, strict, 400, "BadRequest")
    missing = lambda: widgets.get(name="missing", namespace=NAMESPACE)
    rejected(dynamic.exceptions.NotFoundError, missing, 404, "NotFound")
    seen = []
    for event in widgets.watch(namespace=NAMESPACE, resource_version="0", timeout=checks.TIMEOUT):
        seen.append(event["object"].metadata.name)
        if len(seen) == 2:
            break
    equal(sorted(seen), ["one", "two"])
    extensions.delete_custom_resource_definition("widgets.interop.example")
    gone = lambda: not [
        it for it in extensions.list_custom_resource_definition().items
        if it.metadata.name == "widgets.interop.example"
    ]
    eventually(gone, "CRD deleted")


def credentials():
    """requests without a valid token: 401 if the server requires tokens"""
    configuration = client.Configuration.get_default_copy()
    configuration.refresh_api_key_hook = None
    configuration.api_key = {"BearerToken": "Bearer wrong"}
    stranger = client.CoreV1Api(client.ApiClient(configuration))
    if configuration.host.startswith("https:"):
        call = stranger.list_namespace
        rejected(exceptions.UnauthorizedException, call, 401, "Unauthorized")
    else:
        stranger.list_namespace()


if __name__ == "__main__":
    run = checks.Checks("python")
    run.run([
        create_and_get, invalid, selectors, pages, conflict, patches, apply, status_and_scale,
        propagation, collection, watches, shared_informer, custom_resources, dynamic_client,
        credentials,
    ])
    run.exit()
