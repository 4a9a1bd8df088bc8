"""Custom resources."""

import json

from cluster import check, condition, contains, equal, expect
from controllers import owned_by


class Kind:
    """A CRD of its own for each check: objects of the group NAMESPACE.example.com."""

    def __init__(self, n, **spec):
        self.n, self.group = n, f"{n.name}.example.com"
        self.name = f"gadgets.{self.group}"
        self.version = f"{self.group}/v1"
        n.afterwards("delete", "crd", self.name, "--wait=false")
        n.apply(self.definition(**spec))
        n.sh(f"wait --for=condition=Established crd/{self.name} --timeout=60s")

    def definition(self, properties=None, rules=None, versions=None, subresources=None, columns=None, **more):
        schema = {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": properties or {"size": {"type": "integer"}},
                    **({"x-kubernetes-validations": rules} if rules else {}),
                },
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        }
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        if subresources:
            version["subresources"] = subresources
        if columns:
            version["additionalPrinterColumns"] = columns
        names = {
            "plural": "gadgets",
            "singular": "gadget",
            "kind": "Gadget",
            "shortNames": [f"g{self.n.name}"],
            "categories": [f"all-{self.n.name}"],
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": names,
                "versions": versions or [version],
                **more,
            },
        }

    def gadget(self, name, spec=None, **more):
        return {
            "apiVersion": self.version,
            "kind": "Gadget",
            "metadata": {"name": name, **more.pop("metadata", {})},
            "spec": spec or {},
            **more,
        }

    def apply(self, *arguments, **options):
        """Discovery may lag behind a new CRD."""
        return self.n.until("the kind is served", lambda: self.n.apply(self.gadget(*arguments, **options)))

    def get(self, name):
        return self.n.get(self.name, name)


@check
def custom_resources_are_stored_and_listed(n):
    kind = Kind(n, columns=[{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}])
    kind.apply("one", {"size": 3})
    contains(n.sh(f"get {kind.name}"), "NAME   SIZE", "one    3")
    contains(n.sh(f"get g{n.name}"), "one")
    contains(n.sh(f"get all-{n.name}"), "one")
    contains(n.sh(f"api-resources --api-group={kind.group}"), "gadgets", "Gadget")
    contains(n.sh(f"describe {kind.name} one"), "Size:  3")
    equal(kind.get("one")["metadata"]["generation"], 1)
    n.sh(f"label {kind.name} one a=b")
    equal(n.names(kind.name, "-l", "a=b"), ["one"])
    n.sh(f"delete {kind.name} one")
    equal(n.names(kind.name), [])


@check
def custom_resources_are_validated_by_their_schema(n):
    kind = Kind(
        n,
        properties={
            "size": {"type": "integer", "minimum": 1, "maximum": 9},
            "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        },
    )
    kind.apply("one", {"size": 3})
    equal(kind.get("one")["spec"], {"size": 3, "color": "red"})
    n.fails(
        "create -f -",
        "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9",
        stdin=json.dumps(kind.gadget("two", {"size": 10})),
    )
    n.fails(
        "create -f -",
        'spec.color: Unsupported value: "green": supported values: "red", "blue"',
        stdin=json.dumps(kind.gadget("two", {"color": "green"})),
    )
    n.fails("create -f -", 'unknown field "spec.weight"', stdin=json.dumps(kind.gadget("two", {"weight": 1})))
    n.sh("create --validate=ignore -f -", stdin=json.dumps(kind.gadget("three", {"weight": 1})))
    equal(kind.get("three")["spec"], {"color": "red"})


@check
def custom_resources_are_validated_by_rules(n):
    kind = Kind(
        n,
        properties={"low": {"type": "integer"}, "high": {"type": "integer"}},
        rules=[
            {"rule": "self.low <= self.high", "message": "low must not exceed high"},
            {"rule": "self.high >= oldSelf.high", "message": "high must not shrink"},
        ],
    )
    kind.apply("one", {"low": 1, "high": 5})
    n.fails(
        "create -f -", "low must not exceed high", stdin=json.dumps(kind.gadget("two", {"low": 6, "high": 5}))
    )
    n.fails(["patch", kind.name, "one", "--type=merge", "-p", '{"spec":{"high":4}}'], "high must not shrink")
    definition = kind.definition(rules=[{"rule": "self.size +"}])
    n.fails(
        "replace -f -",
        "compilation failed",
        stdin=json.dumps({**definition, "metadata": n.get("crd", kind.name)["metadata"]}),
    )


@check
def custom_status_is_written_separately(n):
    kind = Kind(n, subresources={"status": {}})
    kind.apply("one", {"size": 1}, status={"phase": "New"})
    expect("status" not in kind.get("one"), "create wrote the status")
    n.kubectl(
        "patch",
        kind.name,
        "one",
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status":{"phase":"Done"},"spec":{"size":9}}',
    )
    one = kind.get("one")
    equal((one["status"]["phase"], one["spec"]["size"], one["metadata"]["generation"]), ("Done", 1, 1))
    n.kubectl("patch", kind.name, "one", "--type=merge", "-p", '{"spec":{"size":2}}')
    equal(kind.get("one")["metadata"]["generation"], 2)
    n.kubectl("wait", f"{kind.name}/one", "--for=jsonpath={.status.phase}=Done", "--timeout=10s")


@check
def custom_resources_scale(n):
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }
    kind = Kind(n, subresources={"status": {}, "scale": scale})
    kind.apply("one", {"size": 1})
    n.sh(f"scale {kind.name} one --replicas=4")
    equal(kind.get("one")["spec"]["size"], 4)
    n.fails(f"scale {kind.name} one --current-replicas=1 --replicas=2", "Expected replicas to be 1")
    n.sh(f"autoscale {kind.name} one --min=6 --max=8 --cpu=50%")
    n.until("the autoscaler has set the minimum", lambda: kind.get("one")["spec"]["size"] == 6)


@check
def custom_resources_have_versions(n):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    kind = Kind(
        n,
        versions=[
            {"name": "v1", "served": True, "storage": True, "schema": schema},
            {"name": "v1beta1", "served": True, "storage": False, "schema": schema, "deprecated": True},
        ],
    )
    kind.apply("one", {"size": 1})
    output = n.sh(f"get gadgets.v1beta1.{kind.group} one -o yaml")
    contains(
        output, f"apiVersion: {kind.group}/v1beta1", f"Warning: {kind.group}/v1beta1 Gadget is deprecated"
    )
    equal(n.get("crd", kind.name)["status"]["storedVersions"], ["v1"])
    versions = n.get("crd", kind.name)
    versions["spec"]["versions"][1]["served"] = False
    n.sh("replace -f -", stdin=json.dumps(versions))
    n.until(
        "v1beta1 is not served",
        lambda: n.cluster.request("GET", f"/apis/{kind.group}/v1beta1/gadgets")[0] == 404,
    )


@check
def custom_resources_are_explained(n):
    kind = Kind(n, properties={"size": {"type": "integer", "description": "How large it is."}})
    kind.apply("one", {"size": 1})
    n.until(
        "the schema is published",
        lambda: "How large it is." in n.sh(f"explain gadgets.spec.size --api-version={kind.version}"),
    )
    contains(n.sh(f"explain gadgets --recursive --api-version={kind.version}"), "size\t<integer>")


@check
def custom_resources_are_applied(n):
    lists = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "value": {"type": "integer"}},
        },
    }
    kind = Kind(n, properties={"size": {"type": "integer"}, "parts": lists})
    kind.apply("one", {"size": 1})
    equal(n.apply(kind.gadget("one", {"size": 2})).strip(), f"gadget.{kind.group}/one configured")
    equal(n.apply(kind.gadget("one", {"size": 2})).strip(), f"gadget.{kind.group}/one unchanged")
    n.apply(kind.gadget("one"))
    equal(kind.get("one")["spec"], {})
    for manager in ("a", "b"):
        n.sh(
            f"apply --server-side --field-manager={manager} -f -",
            stdin=json.dumps(kind.gadget("two", {"parts": [{"name": manager, "value": 1}]})),
        )
    equal([p["name"] for p in kind.get("two")["spec"]["parts"]], ["a", "b"])
    n.fails(
        "apply --server-side --field-manager=c -f -",
        'conflict with "a": .spec.parts[name="a"].value',
        stdin=json.dumps(kind.gadget("two", {"parts": [{"name": "a", "value": 2}]})),
    )


@check
def custom_resources_own_objects(n):
    kind = Kind(n)
    kind.apply("owner")
    owner = kind.get("owner")
    kind.apply("child", metadata={"ownerReferences": owned_by(owner)})
    n.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "child", "ownerReferences": owned_by(owner)},
        }
    )
    n.sh(f"delete {kind.name} owner")
    # The collector notices new kinds every 30 s.
    n.until(
        "the children are gone",
        lambda: n.get("configmap", "child") is None and kind.get("child") is None,
        120,
    )


@check
def a_deleted_definition_takes_its_objects_along(n):
    kind = Kind(n)
    kind.apply("held", metadata={"finalizers": ["example.com/hold"]})
    kind.apply("plain")
    n.sh(f"delete crd {kind.name} --wait=false")
    n.until("Terminating", lambda: condition(n.get("crd", kind.name), "Terminating") == "True")
    n.until("only the held object is left", lambda: n.names(kind.name) == ["held"])
    n.kubectl(
        "patch", kind.name, "held", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]'
    )
    n.until_gone("crd", kind.name)
    n.until(
        "the kind is not served", lambda: n.cluster.request("GET", f"/apis/{kind.group}/v1/gadgets")[0] == 404
    )


@check
def a_deleted_namespace_deletes_custom_resources(n):
    kind = Kind(n)
    other = n.name + "-more"
    n.sh(f"create namespace {other}")
    gadget = kind.gadget("one")
    gadget["metadata"]["namespace"] = other
    n.until("created", lambda: n.cluster.run(["create", "-f", "-"], stdin=json.dumps(gadget)))
    n.sh(f"delete namespace {other} --timeout=90s")
    equal(n.cluster.request("GET", f"/apis/{kind.group}/v1/gadgets")[1]["items"], [])


@check
def definitions_are_validated(n):
    kind = Kind(n)
    bad = kind.definition()
    bad["metadata"]["name"] = f"others.{kind.group}"
    n.fails("create -f -", "metadata.name: Invalid value", stdin=json.dumps(bad))
    unstructured = kind.definition(properties={"size": {"properties": {}}})
    n.fails(
        "apply -f -",
        "Required value: must not be empty for specified object fields",
        stdin=json.dumps(unstructured),
    )
