"""kubectl on a namespace of its own for each check, and waiting."""

import json
import os
import re
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

# Seconds until a condition counts as not reached, unless a check says otherwise.
PATIENCE = 60


class Failed(Exception):
    """An expectation that is not met."""


def check(function):
    """Marks a check: it receives a Namespace. Its name says what holds."""
    function.is_check, function.alone = True, False
    return function


def check_alone(function):
    """A check that must not run beside others, because it changes nodes or objects of the whole cluster."""
    function.is_check, function.alone = True, True
    return function


def checks_of(module):
    return [
        f for f in vars(module).values() if getattr(f, "is_check", False) and f.__module__ == module.__name__
    ]


def expect(condition, message):
    if not condition:
        raise Failed(message)


def equal(actual, expected):
    if actual != expected:
        raise Failed(f"expected {expected!r}, got {actual!r}")


def contains(text, *parts):
    for part in parts:
        if part not in text:
            raise Failed(f"no {part!r} in:\n{text}")


def path(value, dotted, default=None):
    """The field of an object: path(pod, "status.conditions")."""
    for name in dotted.split("."):
        if not isinstance(value, dict) or name not in value:
            return default
        value = value[name]
    return value


def condition(value, kind):
    """The status of a condition, or None."""
    for entry in path(value, "status.conditions", []):
        if entry["type"] == kind:
            return entry["status"]
    return None


class Cluster:
    def __init__(self, kubeconfig, kubectl):
        self.kubeconfig, self.program = os.path.abspath(kubeconfig), kubectl
        self.count, self.lock = 0, threading.Lock()
        # kubectl writes caches under its home.
        self.home = tempfile.TemporaryDirectory()
        self.environment = {**os.environ, "KUBECONFIG": self.kubeconfig, "HOME": self.home.name}
        # The proxy adds the credentials, so that the kubelets need none.
        self.proxy = subprocess.Popen(
            [kubectl, "proxy", "--port=0"], env=self.environment, stdout=subprocess.PIPE, text=True
        )
        self.url = "http://" + re.search(r"127\.0\.0\.1:\d+", self.proxy.stdout.readline()).group()

    def close(self):
        self.proxy.terminate()
        self.proxy.wait()
        self.home.cleanup()

    def request(self, method, location, body=None, content_type="application/json"):
        """Returns the code and the decoded body."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + location, data, {"Content-Type": content_type}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                code, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            code, text = error.code, error.read()
        try:
            return code, json.loads(text)
        except ValueError:
            return code, text.decode(errors="replace")

    def run(self, arguments, stdin=None, code=0, environment=None, warnings=True):
        """Output of kubectl, with its warnings. Fails if it exits with another code; None accepts any."""
        done = subprocess.run(
            [self.program, *arguments],
            input=stdin,
            text=True,
            timeout=180,
            capture_output=True,
            env={**self.environment, **(environment or {})},
        )
        if code is not None and done.returncode != code:
            shown, output = " ".join(arguments), done.stdout + done.stderr
            raise Failed(f"kubectl {shown}\nexit code {done.returncode}, expected {code}\n{output}")
        return done.stdout + done.stderr if warnings else done.stdout

    def new_namespace(self, check_name):
        with self.lock:
            self.count += 1
            name = f"check-{self.count}-{int(time.time()) % 100000}"
        self.run(["create", "namespace", name])
        namespace = Namespace(self, name)
        # kube-controller-manager creates it, and pods need it.
        namespace.until("a default service account", lambda: namespace.get("serviceaccount", "default"))
        return namespace


class Namespace:
    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        self.cleanups = []

    def remove(self):
        for cleanup in reversed(self.cleanups):
            self.cluster.run(cleanup, code=None)
        self.cluster.run(["delete", "namespace", self.name, "--wait=false"], code=None)

    def afterwards(self, *arguments):
        """A kubectl command at the end of the check, for objects without a namespace."""
        self.cleanups.append(list(arguments))

    def kubectl(self, *arguments, **options):
        return self.cluster.run(["-n", self.name, *arguments], **options)

    def sh(self, words, **options):
        """kubectl with arguments separated by spaces."""
        return self.kubectl(*words.split(), **options)

    def fails(self, words, *texts, stdin=None):
        """Fails unless kubectl exits with code 1 and prints the texts."""
        arguments = words.split() if isinstance(words, str) else words
        output = self.kubectl(*arguments, stdin=stdin, code=1)
        contains(output, *texts)
        return output

    def files(self, **contents):
        """A directory with these files; `__` stands for a dot."""
        directory = tempfile.mkdtemp(dir=self.cluster.home.name)
        for name, text in contents.items():
            with open(os.path.join(directory, name.replace("__", ".")), "w") as file:
                file.write(text)
        return directory

    def apply(self, *objects):
        return self.sh("apply -f -", stdin=listed(objects))

    def create(self, *objects):
        return self.sh("create -f -", stdin=listed(objects))

    def get(self, *arguments):
        """An object as a dict, or None if it does not exist."""
        output = self.kubectl("get", *arguments, "-o", "json", "--ignore-not-found", warnings=False)
        return json.loads(output) if output.strip() else None

    def items(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "-o", "json", warnings=False))["items"]

    def names(self, *arguments):
        return sorted(item["metadata"]["name"] for item in self.items(*arguments))

    def until(self, what, reached, seconds=PATIENCE):
        """Waits until `reached` returns something true, and returns it."""
        deadline = time.monotonic() + seconds
        last = None
        while time.monotonic() < deadline:
            try:
                last = reached()
                if last:
                    return last
            except Failed as failure:
                last = failure
            time.sleep(0.4)
        raise Failed(f"not reached within {seconds} s: {what} (last: {str(last)[:1000]})")

    def until_gone(self, *arguments):
        self.until(f"{' '.join(arguments)} is gone", lambda: self.get(*arguments) is None)

    def rolled_out(self, target):
        self.sh(f"rollout status {target} --timeout=90s")


def listed(objects):
    if len(objects) == 1:
        return objects[0] if isinstance(objects[0], str) else json.dumps(objects[0])
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def pod(name, *, labels=None, image="registry.k8s.io/pause:3.10", spec=None, container=None, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}, **metadata},
        "spec": {"containers": [{"name": "main", "image": image, **(container or {})}], **(spec or {})},
    }


def template(labels, image="registry.k8s.io/pause:3.10", spec=None, container=None):
    return {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": image, **(container or {})}], **(spec or {})},
    }


def workload(kind, name, image="registry.k8s.io/pause:3.10", pod_spec=None, container=None, **spec):
    """A Deployment, StatefulSet, DaemonSet or ReplicaSet of pods with the label app=NAME."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": template(labels, image, pod_spec, container),
            **spec,
        },
    }


def job(name, command, **spec):
    restart = spec.pop("restart", "Never")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "template": template(
                {"job": name}, spec={"restartPolicy": restart}, container={"command": command}
            ),
            **spec,
        },
    }


def config_map(name, data=None, **metadata):
    values = {"data": data} if data else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, **values}
