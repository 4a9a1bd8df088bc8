"""Deployments, stateful sets, daemon sets, jobs, cron jobs and autoscalers."""

from cluster import check, condition, contains, equal, expect, job, path, pod, template, workload


def pods_of(n, name):
    return n.items("pods", "-l", f"app={name}")


def running(n, name, count):
    def reached():
        pods = [p for p in pods_of(n, name) if "deletionTimestamp" not in p["metadata"]]
        return len(pods) == count and all(condition(p, "Ready") == "True" for p in pods)

    n.until(f"{count} pods of {name} are ready", reached)


def replica_sets(n, name):
    sets = n.items("rs", "-l", f"app={name}")
    revision = "deployment.kubernetes.io/revision"
    return sorted(sets, key=lambda s: int(s["metadata"]["annotations"][revision]))


@check
def a_deployment_rolls_out(n):
    n.sh("create deployment web --image=nginx:1 --replicas=2")
    n.rolled_out("deployment/web")
    web = n.get("deployment", "web")
    equal((path(web, "status.readyReplicas"), path(web, "status.availableReplicas")), (2, 2))
    equal((condition(web, "Available"), condition(web, "Progressing")), ("True", "True"))
    equal(path(web, "status.observedGeneration"), web["metadata"]["generation"])


@check
def a_deployment_scales_up_and_down(n):
    n.apply(workload("Deployment", "web"))
    n.sh("scale deployment web --replicas=4")
    running(n, "web", 4)
    n.fails("scale deployment web --current-replicas=3 --replicas=1", "Expected replicas to be 3")
    n.sh("scale deployment web --current-replicas=4 --replicas=0")
    n.until("no pods", lambda: not pods_of(n, "web"))


@check
def a_new_image_replaces_the_replica_set(n):
    n.apply(workload("Deployment", "web", "nginx:1", replicas=3))
    n.rolled_out("deployment/web")
    n.sh("set image deployment/web main=nginx:2")
    n.rolled_out("deployment/web")
    old, new = replica_sets(n, "web")
    equal((old["spec"]["replicas"], new["spec"]["replicas"]), (0, 3))
    n.until(
        "only new pods",
        lambda: {p["spec"]["containers"][0]["image"] for p in pods_of(n, "web")} == {"nginx:2"},
    )


@check
def a_rollout_is_undone(n):
    n.apply(workload("Deployment", "web", "nginx:1"))
    n.rolled_out("deployment/web")
    n.sh("set image deployment/web main=nginx:2")
    n.rolled_out("deployment/web")
    n.sh("rollout undo deployment/web")
    n.rolled_out("deployment/web")
    equal(n.get("deployment", "web")["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:1")
    n.sh("rollout undo deployment/web --to-revision=2")
    equal(n.get("deployment", "web")["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:2")


@check
def the_history_of_rollouts_has_causes(n):
    n.apply(workload("Deployment", "web", "nginx:1"))
    n.rolled_out("deployment/web")
    n.sh("annotate deployment/web kubernetes.io/change-cause=first")
    n.until(
        "the cause is in the replica set",
        lambda: "kubernetes.io/change-cause" in replica_sets(n, "web")[0]["metadata"]["annotations"],
    )
    n.sh("set image deployment/web main=nginx:2")
    n.rolled_out("deployment/web")
    contains(n.sh("rollout history deployment/web"), "REVISION", "1         first")
    contains(n.sh("rollout history deployment/web --revision=2"), "nginx:2")


@check
def a_paused_deployment_waits(n):
    n.apply(workload("Deployment", "web", "nginx:1"))
    n.rolled_out("deployment/web")
    n.sh("rollout pause deployment/web")
    n.sh("set image deployment/web main=nginx:2")
    n.until(
        "the change is observed",
        lambda: (
            path(n.get("deployment", "web"), "status.observedGeneration")
            == n.get("deployment", "web")["metadata"]["generation"]
        ),
    )
    equal(len(replica_sets(n, "web")), 1)
    n.sh("rollout resume deployment/web")
    n.rolled_out("deployment/web")
    equal(len(replica_sets(n, "web")), 2)


@check
def a_restart_replaces_all_pods(n):
    n.apply(workload("Deployment", "web", replicas=2))
    n.rolled_out("deployment/web")
    before = {p["metadata"]["uid"] for p in pods_of(n, "web")}
    n.sh("rollout restart deployment/web")
    n.rolled_out("deployment/web")
    n.until("no old pods", lambda: not before & {p["metadata"]["uid"] for p in pods_of(n, "web")})


@check
def a_rollout_without_progress_is_reported(n):
    n.apply(workload("Deployment", "web", "missing:1", progressDeadlineSeconds=3))
    n.until(
        "ProgressDeadlineExceeded", lambda: condition(n.get("deployment", "web"), "Progressing") == "False"
    )
    n.fails("rollout status deployment/web --timeout=5s", "exceeded its progress deadline")


@check
def recreate_deletes_old_pods_first(n):
    n.apply(workload("Deployment", "web", "nginx:1", replicas=2, strategy={"type": "Recreate"}))
    n.rolled_out("deployment/web")
    n.sh("set image deployment/web main=nginx:2")
    n.rolled_out("deployment/web")
    contains(n.sh("get events --field-selector involvedObject.name=web"), "Scaled down", "Scaled up")
    running(n, "web", 2)


@check
def a_deleted_deployment_leaves_nothing(n):
    n.apply(workload("Deployment", "web", replicas=2))
    n.rolled_out("deployment/web")
    n.sh("delete deployment web")
    n.until("no replica sets and pods", lambda: not n.items("rs,pods", "-l", "app=web"))


@check
def orphans_are_adopted_by_the_next_deployment(n):
    web = workload("Deployment", "web", replicas=2)
    n.apply(web)
    n.rolled_out("deployment/web")
    n.sh("delete deployment web --cascade=orphan")
    n.until_gone("deployment", "web")
    n.until(
        "the replica set has no owner",
        lambda: "ownerReferences" not in n.items("rs", "-l", "app=web")[0]["metadata"],
    )
    before = n.names("rs,pods", "-l", "app=web")
    n.apply(web)
    n.rolled_out("deployment/web")
    n.until(
        "the replica set is adopted",
        lambda: n.items("rs", "-l", "app=web")[0]["metadata"].get("ownerReferences"),
    )
    equal(n.names("rs,pods", "-l", "app=web"), before)


@check
def a_foreground_delete_waits_for_dependents(n):
    n.apply(workload("Deployment", "web", replicas=2))
    n.rolled_out("deployment/web")
    n.sh("delete deployment web --cascade=foreground")
    equal(n.items("deployment,rs,pods", "-l", "app=web"), [])


@check
def a_replica_set_adopts_and_releases_pods(n):
    n.apply(pod("loose", labels={"app": "web"}))
    n.apply(workload("ReplicaSet", "web", replicas=1))
    n.until("the pod is adopted", lambda: n.get("pod", "loose")["metadata"].get("ownerReferences"))
    n.sh("label pod loose app=other --overwrite")
    n.until("the pod is released", lambda: not n.get("pod", "loose")["metadata"].get("ownerReferences"))
    running(n, "web", 1)


@check
def a_replication_controller_keeps_its_pods(n):
    n.apply(
        {
            "apiVersion": "v1",
            "kind": "ReplicationController",
            "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": {"app": "web"}, "template": template({"app": "web"})},
        }
    )
    running(n, "web", 2)
    n.sh(f"delete pod {pods_of(n, 'web')[0]['metadata']['name']}")
    running(n, "web", 2)
    n.sh("scale rc web --replicas=1")
    running(n, "web", 1)


def stateful(n, **spec):
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "none",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    n.apply(
        workload(
            "StatefulSet",
            "db",
            "nginx:1",
            serviceName="db",
            volumeClaimTemplates=[claim],
            pod_spec={"nodeName": "node-1"},
            **spec,
        )
    )


@check
def a_stateful_set_has_names_and_claims(n):
    stateful(n, replicas=3)
    n.rolled_out("statefulset/db")
    equal(n.names("pods", "-l", "app=db"), ["db-0", "db-1", "db-2"])
    equal(n.names("pvc"), ["data-db-0", "data-db-1", "data-db-2"])
    first = n.get("pod", "db-0")
    equal((first["spec"]["hostname"], first["spec"]["subdomain"]), ("db-0", "db"))
    equal(first["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "0")


@check
def a_stateful_set_keeps_claims_when_it_shrinks(n):
    stateful(n, replicas=2)
    n.rolled_out("statefulset/db")
    n.sh("scale statefulset db --replicas=1")
    n.until_gone("pod", "db-1")
    equal(n.names("pvc"), ["data-db-0", "data-db-1"])


@check
def a_stateful_set_deletes_claims_by_its_policy(n):
    stateful(
        n, replicas=2, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"}
    )
    n.rolled_out("statefulset/db")
    n.sh("scale statefulset db --replicas=1")
    n.until_gone("pvc", "data-db-1")
    n.sh("delete statefulset db")
    n.until("no claims", lambda: not n.items("pvc"))


@check
def a_stateful_set_updates_above_its_partition(n):
    stateful(n, replicas=3, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    n.rolled_out("statefulset/db")
    n.sh("set image statefulset/db main=nginx:2")

    def image(name):
        return path(n.get("pod", name) or {}, "spec.containers", [{"image": ""}])[0]["image"]

    n.until(
        "the last pod is new",
        lambda: image("db-2") == "nginx:2" and condition(n.get("pod", "db-2"), "Ready") == "True",
    )
    equal((image("db-0"), image("db-1")), ("nginx:1", "nginx:1"))
    n.kubectl(
        "patch", "statefulset", "db", "-p", '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'
    )
    n.rolled_out("statefulset/db")
    equal((image("db-0"), image("db-1")), ("nginx:2", "nginx:2"))
    expect(len(n.items("controllerrevisions", "-l", "app=db")) == 2, "no revision of each template")


@check
def a_daemon_set_has_a_pod_on_each_node(n):
    n.apply(workload("DaemonSet", "agent", "nginx:1"))
    n.rolled_out("daemonset/agent")

    def on():
        return {p["spec"]["nodeName"] for p in pods_of(n, "agent")}

    expect({"node-1", "node-2"} <= on(), f"pods on {on()}")
    n.sh("set image daemonset/agent main=nginx:2")
    n.rolled_out("daemonset/agent")
    n.until(
        "only new pods",
        lambda: {p["spec"]["containers"][0]["image"] for p in pods_of(n, "agent")} == {"nginx:2"},
    )
    n.sh("rollout undo daemonset/agent")
    n.rolled_out("daemonset/agent")


@check
def a_daemon_set_follows_the_labels_of_nodes(n):
    key = f"check/{n.name}"
    n.apply(workload("DaemonSet", "agent", pod_spec={"nodeSelector": {key: "yes"}}))
    n.until("observed", lambda: path(n.get("daemonset", "agent"), "status.observedGeneration") == 1)
    equal(path(n.get("daemonset", "agent"), "status.desiredNumberScheduled"), 0)
    n.afterwards("label", "node", "node-1", f"{key}-")
    n.sh(f"label node node-1 {key}=yes")
    running(n, "agent", 1)
    n.sh(f"label node node-1 {key}-")
    n.until("no pods", lambda: not pods_of(n, "agent"))


@check
def a_job_completes(n):
    n.apply(job("work", ["true"], completions=3, parallelism=2))
    n.sh("wait --for=condition=complete job/work --timeout=90s")
    done = n.get("job", "work")
    equal((done["status"]["succeeded"], condition(done, "SuccessCriteriaMet")), (3, "True"))
    expect("completionTime" in done["status"], "no completionTime")
    n.until("finalizers are removed", lambda: all("finalizers" not in p["metadata"] for p in n.items("pods")))


@check
def a_job_fails_at_its_backoff_limit(n):
    n.apply(job("work", ["false"], backoffLimit=1))
    n.sh("wait --for=condition=failed job/work --timeout=90s")
    failed = [c for c in n.get("job", "work")["status"]["conditions"] if c["type"] == "Failed"][0]
    equal(failed["reason"], "BackoffLimitExceeded")


@check
def a_job_fails_at_its_deadline(n):
    n.apply(job("work", ["sleep", "1000"], activeDeadlineSeconds=2))
    n.sh("wait --for=condition=failed job/work --timeout=90s")
    n.until("no pods", lambda: not n.items("pods"))


@check
def an_indexed_job_numbers_its_pods(n):
    n.apply(job("work", ["true"], completions=3, parallelism=3, completionMode="Indexed"))
    n.sh("wait --for=condition=complete job/work --timeout=90s")
    equal(n.get("job", "work")["status"]["completedIndexes"], "0-2")
    label = "batch.kubernetes.io/job-completion-index"
    equal({p["metadata"]["labels"][label] for p in n.items("pods")}, {"0", "1", "2"})


@check
def a_suspended_job_starts_when_it_is_resumed(n):
    n.apply(job("work", ["true"], suspend=True))
    n.until("Suspended", lambda: condition(n.get("job", "work"), "Suspended") == "True")
    equal(n.items("pods"), [])
    n.kubectl("patch", "job", "work", "-p", '{"spec":{"suspend":false}}')
    n.sh("wait --for=condition=complete job/work --timeout=90s")


@check
def a_finished_job_expires(n):
    n.apply(job("work", ["true"], ttlSecondsAfterFinished=1))
    n.until_gone("job", "work")
    n.until("no pods", lambda: not n.items("pods"))


@check
def a_deleted_job_deletes_its_pods(n):
    n.apply(job("work", ["sleep", "1000"], parallelism=2))
    n.until("two pods", lambda: len(n.items("pods")) == 2)
    n.sh("delete job work")
    n.until("no pods", lambda: not n.items("pods"))


@check
def a_pod_failure_policy_ends_a_job(n):
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}
    n.apply(job("work", ["false"], backoffLimit=6, podFailurePolicy={"rules": [rule]}))
    n.sh("wait --for=condition=failed job/work --timeout=90s")
    failed = [c for c in n.get("job", "work")["status"]["conditions"] if c["type"] == "Failed"][0]
    equal(failed["reason"], "PodFailurePolicy")


@check
def a_cron_job_starts_jobs(n):
    n.kubectl("create", "cronjob", "tick", "--image=nginx", "--schedule=* * * * *", "--", "true")
    n.until("a job", lambda: n.items("jobs"), 90)
    n.until("its job is complete", lambda: condition(n.items("jobs")[0], "Complete") == "True")
    n.until("lastSuccessfulTime", lambda: path(n.get("cronjob", "tick"), "status.lastSuccessfulTime"))


@check
def a_job_is_made_of_a_cron_job(n):
    n.kubectl("create", "cronjob", "tick", "--image=nginx", "--schedule=0 0 1 1 *", "--", "true")
    n.sh("create job now --from=cronjob/tick")
    n.sh("wait --for=condition=complete job/now --timeout=90s")
    equal(n.get("job", "now")["metadata"]["annotations"]["cronjob.kubernetes.io/instantiate"], "manual")
    n.kubectl("patch", "cronjob", "tick", "-p", '{"spec":{"suspend":true}}')
    contains(n.sh("get cronjob tick"), "True")
    n.fails(["patch", "cronjob", "tick", "-p", '{"spec":{"schedule":"often"}}'], 'Invalid value: "often"')


@check
def an_autoscaler_keeps_the_minimum(n):
    n.apply(workload("Deployment", "web"))
    n.sh("autoscale deployment web --min=3 --max=5 --cpu=50%")
    running(n, "web", 3)
    scaler = n.until(
        "conditions", lambda: condition(n.get("hpa", "web"), "AbleToScale") and n.get("hpa", "web")
    )
    equal(scaler["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50)
    n.until("the metric cannot be read", lambda: condition(n.get("hpa", "web"), "ScalingActive") == "False")
    contains(n.sh("get hpa web"), "Deployment/web", "cpu: <unknown>/50%")


@check
def an_autoscaler_has_both_versions(n):
    n.apply(
        {
            "apiVersion": "autoscaling/v1",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": {
                "maxReplicas": 3,
                "targetCPUUtilizationPercentage": 70,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            },
        }
    )
    target = n.get("horizontalpodautoscalers.v2.autoscaling", "web")["spec"]["metrics"][0]["resource"][
        "target"
    ]
    equal(target, {"averageUtilization": 70, "type": "Utilization"})
    equal(
        n.get("horizontalpodautoscalers.v1.autoscaling", "web")["spec"]["targetCPUUtilizationPercentage"], 70
    )
