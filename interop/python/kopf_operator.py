"""An operator on kopf, with handlers for a custom resource that survive cut and expired watches."""

import threading

import kopf
from kubernetes import client, config

import checks
from checks import NAMESPACE, equal, eventually
from official import fault

GROUP = "interop.example"
WIDGETS = (GROUP, "v1", NAMESPACE, "widgets")

config.load_kube_config()
core = client.CoreV1Api()
custom = client.CustomObjectsApi()
extensions = client.ApiextensionsV1Api()


@kopf.on.login()
def login(**options):
    """Uses the credentials of KUBECONFIG."""
    return kopf.login_with_kubeconfig(**options)


@kopf.on.create(GROUP, "v1", "widgets")
def create(spec, name, namespace, **_):
    """Creates the ConfigMap of a widget, which the widget owns."""
    body = checks.config_map(name, {"size": str(spec["size"])})
    kopf.adopt(body)
    core.create_namespaced_config_map(namespace, body)
    return {"size": spec["size"]}


@kopf.on.update(GROUP, "v1", "widgets", field="spec.size")
def update(new, name, namespace, **_):
    """Updates the ConfigMap of a widget."""
    body = {"data": {"size": str(new)}}
    core.patch_namespaced_config_map(
        name, namespace, body, _content_type="application/merge-patch+json"
    )


@kopf.on.delete(GROUP, "v1", "widgets")
def delete(name, namespace, **_):
    """Records that a widget is being deleted."""
    core.create_namespaced_config_map(namespace, checks.config_map(f"deleted-{name}"))


def sizes():
    """Returns the size in the ConfigMap of each widget."""
    items = core.list_namespaced_config_map(NAMESPACE).items
    return {item.metadata.name: item.data["size"] for item in items if item.data}


def resize(name, size):
    """Changes the size of a widget."""
    body = {"spec": {"size": size}}
    custom.patch_namespaced_custom_object(
        *WIDGETS, name, body, _content_type="application/merge-patch+json"
    )


def creates():
    """handlers of creates and updates, and the status that kopf writes"""
    custom.create_namespaced_custom_object(*WIDGETS, checks.widget("one", 1))
    eventually(lambda: sizes().get("one") == "1", "the handler of the create")
    resize("one", 2)
    eventually(lambda: sizes().get("one") == "2", "the handler of the update")
    found = custom.get_namespaced_custom_object(*WIDGETS, "one")
    equal(found["status"]["create"], {"size": 1})
    assert found["metadata"]["finalizers"], found


def interruptions():
    """handlers after a cut watch and after an expired version"""
    fault("cut-watches")
    resize("one", 3)
    eventually(lambda: sizes().get("one") == "3", "the handler after a cut")
    fault("stall-watches?on=true")
    resize("one", 4)
    fault("forget-window")
    fault("stall-watches?on=false")
    eventually(lambda: sizes().get("one") == "4", "the handler after an expired version")


def deletes():
    """the handler of a delete, the finalizer, and garbage collection"""
    custom.delete_namespaced_custom_object(*WIDGETS, "one")
    eventually(lambda: not custom.list_namespaced_custom_object(*WIDGETS)["items"], "deleted")
    names = lambda: [item.metadata.name for item in core.list_namespaced_config_map(NAMESPACE).items]
    assert "deleted-one" in names(), names()
    eventually(lambda: "one" not in names(), "the ConfigMap of the widget is deleted")


def prepare():
    """Creates the namespace and the CRD. Returns when the CRD is established."""
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    crd = checks.widget_crd()
    # kopf keeps its progress in the status.
    version = crd["spec"]["versions"][0]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    status["x-kubernetes-preserve-unknown-fields"] = True
    extensions.create_custom_resource_definition(crd)

    def established():
        conditions = extensions.read_custom_resource_definition(crd["metadata"]["name"]).status.conditions
        return any(it.type == "Established" and it.status == "True" for it in conditions or [])

    eventually(established, "CRD established")


def main():
    """Runs the operator in a thread, and the checks."""
    prepare()
    ready, stop = threading.Event(), threading.Event()
    options = {"standalone": True, "namespaces": [NAMESPACE], "ready_flag": ready, "stop_flag": stop}
    operator = threading.Thread(target=kopf.run, kwargs=options)
    operator.start()
    equal(ready.wait(checks.TIMEOUT), True)
    run = checks.Checks("python-kopf")
    run.run([creates, interruptions, deletes])
    stop.set()
    operator.join()
    run.exit()


if __name__ == "__main__":
    main()
