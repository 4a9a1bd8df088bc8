package interop;

import static interop.Checks.NAMESPACE;
import static interop.Checks.contains;
import static interop.Checks.equal;
import static interop.Checks.eventually;
import static interop.Checks.named;

import com.google.gson.reflect.TypeToken;
import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.AppsV1Api;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import io.kubernetes.client.openapi.models.V1Container;
import io.kubernetes.client.openapi.models.V1Deployment;
import io.kubernetes.client.openapi.models.V1Namespace;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.openapi.models.V1OwnerReference;
import io.kubernetes.client.openapi.models.V1Pod;
import io.kubernetes.client.openapi.models.V1PodSpec;
import io.kubernetes.client.util.Config;
import io.kubernetes.client.util.PatchUtils;
import io.kubernetes.client.util.Watch;
import io.kubernetes.client.util.Yaml;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The official client: typed API, patches, watches. The rest is in {@link OfficialInformers}. */
public final class Official {
    private static final String DEPLOYMENT =
            """
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: NAME}
            spec:
              replicas: 2
              selector: {matchLabels: {app: NAME}}
              template:
                metadata: {labels: {app: NAME}}
                spec:
                  containers:
                  - {name: main, image: "main:1"}
            """;

    private final ApiClient client;
    private final CoreV1Api core;
    private final AppsV1Api apps;

    Official(ApiClient client) {
        this.client = client;
        core = new CoreV1Api(client);
        apps = new AppsV1Api(client);
    }

    public static void main(String[] arguments) throws Exception {
        ApiClient client = Config.defaultClient();
        Official official = new Official(client);
        OfficialInformers informers = new OfficialInformers(client, official);
        Checks checks = new Checks("java");
        checks.run("create, get, not found, already exists", official::createAndGet);
        checks.run("invalid objects: 422 with causes; dry run", official::invalid);
        checks.run("lists with label and field selectors", official::selectors);
        checks.run("lists in pages, with a continue token that expires", official::pages);
        checks.run("update, and the conflict of an update with an old version", official::conflict);
        checks.run("merge, JSON and strategic merge patches", official::patches);
        checks.run("server-side apply: conflict, force", official::apply);
        checks.run("status and scale of a Deployment", official::statusAndScale);
        checks.run("delete in the background, in the foreground, and with orphans", official::propagation);
        checks.run("delete of a collection by selector, and of a pod", official::collection);
        checks.run("watch from a version, and 410 from an expired one", official::watches);
        checks.run("informer: events, cut watches, an expired version", informers::informer);
        checks.run("CRD, and custom objects with status and scale", informers::customResources);
        checks.run("dynamic API: apply, informer, errors", informers::dynamicApi);
        checks.run("requests without a valid token: 401 if the server requires tokens", informers::credentials);
        checks.exit();
    }

    /** Injects a fault with the endpoints of `serve --fault-endpoints`. */
    void fault(String fault) throws ApiException {
        String[] authentication = {"BearerToken"};
        Map<String, String> headers = new HashMap<>();
        client.execute(client.buildCall(
                client.getBasePath(), "/faults/" + fault, "POST", List.of(), List.of(), null,
                headers, Map.of(), Map.of(), authentication, null));
    }

    interface Request {
        Object execute() throws Exception;
    }

    /** Fails unless the request is rejected with this HTTP status and this reason of a Status object. */
    static ApiException rejected(Request request, int code, String reason) throws Exception {
        try {
            request.execute();
        } catch (ApiException error) {
            equal(error.getCode(), code);
            contains(error.getResponseBody(), "\"reason\":\"" + reason + "\"");
            return error;
        }
        throw new AssertionError("not rejected with " + code);
    }

    static V1ConfigMap configMap(String name, Map<String, String> data, Map<String, String> labels) {
        return new V1ConfigMap()
                .apiVersion("v1")
                .kind("ConfigMap")
                .metadata(new V1ObjectMeta().name(name).labels(labels))
                .data(data);
    }

    V1ConfigMap create(String name, Map<String, String> data, Map<String, String> labels) throws ApiException {
        return core.createNamespacedConfigMap(NAMESPACE, configMap(name, data, labels)).execute();
    }

    V1ConfigMap read(String name) throws ApiException {
        return core.readNamespacedConfigMap(name, NAMESPACE).execute();
    }

    CoreV1Api.APIlistNamespacedConfigMapRequest list() {
        return core.listNamespacedConfigMap(NAMESPACE);
    }

    static List<String> names(V1ConfigMapList list) {
        return list.getItems().stream().map(item -> item.getMetadata().getName()).toList();
    }

    V1ConfigMap patch(String name, String body, String format) throws ApiException {
        return PatchUtils.patch(
                V1ConfigMap.class,
                () -> core.patchNamespacedConfigMap(name, NAMESPACE, new V1Patch(body)).buildCall(null),
                format,
                client);
    }

    private V1Deployment createDeployment(String name) throws ApiException {
        V1Deployment body = Yaml.loadAs(DEPLOYMENT.replace("NAME", name), V1Deployment.class);
        return apps.createNamespacedDeployment(NAMESPACE, body).execute();
    }

    private void createAndGet() throws Exception {
        core.createNamespace(new V1Namespace().metadata(new V1ObjectMeta().name(NAMESPACE))).execute();
        V1ConfigMap created = create("first", Map.of("a", "1"), Map.of("app", "first"));
        equal(read("first"), created);
        equal(created.getData(), Map.of("a", "1"));
        rejected(() -> read("missing"), 404, "NotFound");
        rejected(() -> create("first", Map.of(), Map.of()), 409, "AlreadyExists");
    }

    private void invalid() throws Exception {
        V1Deployment body = Yaml.loadAs(DEPLOYMENT.replace("NAME", "invalid"), V1Deployment.class);
        body.getSpec().getTemplate().getSpec().getContainers().get(0).setName("Not A Name");
        ApiException error =
                rejected(() -> apps.createNamespacedDeployment(NAMESPACE, body).execute(), 422, "Invalid");
        contains(error.getResponseBody(), "\"field\":\"spec.template.spec.containers[0].name\"");
        core.createNamespacedConfigMap(NAMESPACE, configMap("dry", Map.of(), Map.of())).dryRun("All").execute();
        rejected(() -> read("dry"), 404, "NotFound");
    }

    private void selectors() throws Exception {
        for (int index = 0; index < 4; index++) {
            String part = index % 2 == 0 ? "even" : "odd";
            create("select-" + index, Map.of(), Map.of("of", "select", "part", part));
        }
        equal(names(list().labelSelector("of=select,part=even").execute()), List.of("select-0", "select-2"));
        equal(names(list().labelSelector("of in (select),part!=even").execute()), List.of("select-1", "select-3"));
        equal(names(list().fieldSelector("metadata.name=select-3").execute()), List.of("select-3"));
        rejected(() -> list().fieldSelector("data.a=1").execute(), 400, "BadRequest");
    }

    private void pages() throws Exception {
        for (int index = 0; index < 5; index++) {
            create("page-" + index, Map.of(), Map.of());
        }
        List<String> all = names(list().execute());
        List<String> paged = new ArrayList<>();
        String token = null;
        do {
            V1ConfigMapList page = list().limit(2)._continue(token).execute();
            paged.addAll(names(page));
            Long remaining = page.getMetadata().getRemainingItemCount();
            equal(remaining == null ? 0 : remaining, (long) (all.size() - paged.size()));
            token = page.getMetadata().getContinue();
        } while (token != null && !token.isEmpty());
        equal(paged, all);
        String expired = list().limit(2).execute().getMetadata().getContinue();
        create("page-5", Map.of(), Map.of());
        fault("compact");
        rejected(() -> list().limit(2)._continue(expired).execute(), 410, "Expired");
    }

    private void conflict() throws Exception {
        V1ConfigMap old = create("update", Map.of("a", "1"), Map.of());
        V1ConfigMap changed = read("update").data(Map.of("a", "2"));
        core.replaceNamespacedConfigMap("update", NAMESPACE, changed).execute();
        old.data(Map.of("a", "3"));
        rejected(() -> core.replaceNamespacedConfigMap("update", NAMESPACE, old).execute(), 409, "Conflict");
    }

    private void patches() throws Exception {
        create("patch", Map.of("a", "1", "b", "1"), Map.of());
        String merge = "{\"data\": {\"a\": null, \"c\": \"1\"}}";
        equal(
                patch("patch", merge, V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH).getData(),
                Map.of("b", "1", "c", "1"));
        String operations =
                """
                [{"op": "test", "path": "/data/b", "value": "1"},
                 {"op": "replace", "path": "/data/b", "value": "2"}]
                """;
        equal(
                patch("patch", operations, V1Patch.PATCH_FORMAT_JSON_PATCH).getData(),
                Map.of("b", "2", "c", "1"));
        rejected(() -> patch("patch", operations, V1Patch.PATCH_FORMAT_JSON_PATCH), 422, "Invalid");
        createDeployment("strategic");
        String second =
                """
                {"spec": {"template": {"spec": {"containers": [{"name": "second", "image": "second:1"}]}}}}
                """;
        V1Deployment patched = PatchUtils.patch(
                V1Deployment.class,
                () -> apps.patchNamespacedDeployment("strategic", NAMESPACE, new V1Patch(second)).buildCall(null),
                V1Patch.PATCH_FORMAT_STRATEGIC_MERGE_PATCH,
                client);
        List<V1Container> containers = patched.getSpec().getTemplate().getSpec().getContainers();
        equal(containers.stream().map(V1Container::getName).toList(), List.of("second", "main"));
    }

    private V1ConfigMap apply(String manager, String value, boolean force) throws ApiException {
        String body = Yaml.dump(configMap("apply", Map.of("a", value), Map.of()));
        return PatchUtils.patch(
                V1ConfigMap.class,
                () -> core.patchNamespacedConfigMap("apply", NAMESPACE, new V1Patch(body))
                        .fieldManager(manager).force(force).buildCall(null),
                V1Patch.PATCH_FORMAT_APPLY_YAML,
                client);
    }

    private void apply() throws Exception {
        V1ConfigMap applied = apply("one", "1", false);
        equal(applied.getData(), Map.of("a", "1"));
        ApiException error = rejected(() -> apply("two", "2", false), 409, "Conflict");
        contains(error.getResponseBody(), "\"field\":\".data.a\"");
        equal(apply("two", "2", true).getData(), Map.of("a", "2"));
    }

    private void statusAndScale() throws Exception {
        V1Deployment deployment = createDeployment("scaled");
        deployment.getStatus().replicas(2).observedGeneration(1L);
        deployment.getSpec().replicas(9);
        V1Deployment updated = apps.replaceNamespacedDeploymentStatus("scaled", NAMESPACE, deployment).execute();
        equal(updated.getStatus().getReplicas(), 2);
        equal(updated.getSpec().getReplicas(), 2);
        var scale = apps.readNamespacedDeploymentScale("scaled", NAMESPACE).execute();
        equal(scale.getStatus().getSelector(), "app=scaled");
        scale.getSpec().replicas(5);
        apps.replaceNamespacedDeploymentScale("scaled", NAMESPACE, scale).execute();
        equal(apps.readNamespacedDeployment("scaled", NAMESPACE).execute().getSpec().getReplicas(), 5);
    }

    private void propagation() throws Exception {
        for (String policy : List.of("Background", "Foreground", "Orphan")) {
            String owner = named("owner", policy);
            String dependent = named("dependent", policy);
            String uid = create(owner, Map.of(), Map.of()).getMetadata().getUid();
            V1ConfigMap body = configMap(dependent, Map.of(), Map.of());
            body.getMetadata().addOwnerReferencesItem(new V1OwnerReference()
                    .apiVersion("v1").kind("ConfigMap").name(owner).uid(uid).blockOwnerDeletion(true));
            core.createNamespacedConfigMap(NAMESPACE, body).execute();
            core.deleteNamespacedConfigMap(owner, NAMESPACE).propagationPolicy(policy).execute();
            eventually(() -> !names(list().execute()).contains(owner), () -> policy + ": owner deleted");
            if (policy.equals("Orphan")) {
                equal(read(dependent).getMetadata().getOwnerReferences(), List.of());
            } else {
                eventually(
                        () -> !names(list().execute()).contains(dependent), () -> policy + ": dependent deleted");
            }
        }
    }

    private void collection() throws Exception {
        core.deleteCollectionNamespacedConfigMap(NAMESPACE).labelSelector("of=select").execute();
        equal(names(list().labelSelector("of=select").execute()), List.of());
        V1PodSpec spec = new V1PodSpec().addContainersItem(new V1Container().name("a").image("a:1"));
        V1Pod pod = new V1Pod().metadata(new V1ObjectMeta().name("pod")).spec(spec);
        core.createNamespacedPod(NAMESPACE, pod).execute();
        V1Pod deleted = core.deleteNamespacedPod("pod", NAMESPACE).execute();
        equal(deleted.getMetadata().getDeletionTimestamp() != null, true);
        eventually(
                () -> core.listNamespacedPod(NAMESPACE).execute().getItems().isEmpty(), () -> "pod removed");
    }

    private Watch<V1ConfigMap> watch(String version, String name) throws ApiException {
        return Watch.createWatch(
                client,
                list().resourceVersion(version).fieldSelector("metadata.name=" + name).watch(true).buildCall(null),
                new TypeToken<Watch.Response<V1ConfigMap>>() {}.getType());
    }

    private void watches() throws Exception {
        String version = list().execute().getMetadata().getResourceVersion();
        create("watched", Map.of("a", "1"), Map.of());
        patch("watched", "{\"data\": {\"a\": \"2\"}}", V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH);
        core.deleteNamespacedConfigMap("watched", NAMESPACE).execute();
        List<String> seen = new ArrayList<>();
        try (Watch<V1ConfigMap> watch = watch(version, "watched")) {
            for (int index = 0; index < 3; index++) {
                Watch.Response<V1ConfigMap> event = watch.next();
                seen.add(event.type + " " + event.object.getData().get("a"));
            }
        }
        equal(seen, List.of("ADDED 1", "MODIFIED 2", "DELETED 2"));
        fault("forget-window");
        try (Watch<V1ConfigMap> watch = watch(version, "watched")) {
            equal(watch.next().status.getCode(), 410);
        }
    }
}
