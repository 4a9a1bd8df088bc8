"""Checks with a name. Each prints one line; the program fails if one of them fails."""

import sys
import time
import traceback

NAMESPACE = "clients"
TIMEOUT = 20


class Checks:
    """Runs checks and counts the failures."""

    def __init__(self, program):
        self.program = program
        self.passed = 0
        self.failed = 0

    def run(self, functions):
        """Runs each function. The first line of its doc comment is the name of the check."""
        for function in functions:
            try:
                function()
            except Exception:
                self.report(function, failed=True)
            else:
                self.report(function)

    async def run_async(self, function, *arguments):
        """Runs one asynchronous function."""
        try:
            await function(*arguments)
        except Exception:
            self.report(function, failed=True)
        else:
            self.report(function)

    def report(self, function, failed=False):
        """Prints the result of one check."""
        name = function.__doc__.splitlines()[0]
        if failed:
            self.failed += 1
            print(f"FAILED {self.program}: {name}")
            traceback.print_exc(file=sys.stdout)
        else:
            self.passed += 1
            print(f"ok     {self.program}: {name}")

    def exit(self):
        """Prints the totals and ends the process with 1 if a check failed."""
        print(f"{self.program}: {self.passed} checks passed, {self.failed} failed")
        sys.exit(1 if self.failed else 0)


def equal(actual, expected):
    """Fails unless the values are equal."""
    if actual != expected:
        raise AssertionError(f"expected {expected!r}, got {actual!r}")


def eventually(condition, what):
    """Waits until the condition is true."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {TIMEOUT} s: {what}")
        time.sleep(0.02)


def rejected(exception, call, status, reason):
    """Fails unless the call raises the exception with this HTTP status and this reason of a Status object."""
    try:
        call()
    except exception as error:
        equal(error.status, status)
        if f'"reason":"{reason}"' not in error.body:
            raise AssertionError(f"no reason {reason} in {error.body}")
        return error
    raise AssertionError(f"not rejected with {status}")


def config_map(name, data=None, **labels):
    """A ConfigMap as a dictionary."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels},
        "data": data or {},
    }


def deployment(name, replicas=1):
    """A Deployment with one container, as a dictionary."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "main:1"}]},
            },
        },
    }


def widget_crd():
    """A CustomResourceDefinition with the subresources status and scale."""
    integer = {"type": "integer"}
    spec = {
        "type": "object",
        "required": ["size"],
        "properties": {"size": {"type": "integer", "minimum": 1}, "replicas": integer},
    }
    status = {"type": "object", "properties": {"replicas": integer}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
            },
        },
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": spec, "status": status},
            }
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.interop.example"},
        "spec": {
            "group": "interop.example",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [version],
        },
    }


def widget(name, size):
    """An object of that CRD."""
    return {
        "apiVersion": "interop.example/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": size},
    }
