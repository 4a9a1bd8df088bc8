package interop;

import static interop.Checks.NAMESPACE;
import static interop.Checks.equal;
import static interop.Checks.eventually;
import static interop.Checks.named;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.ConfigMapList;
import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.DeletionPropagation;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.Status;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.MixedOperation;
import io.fabric8.kubernetes.client.dsl.NonNamespaceOperation;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The fabric8 client: typed API and patches. The rest is in {@link Fabric8Informers}. */
public final class Fabric8 {
    private final KubernetesClient client;
    private final NonNamespaceOperation<ConfigMap, ConfigMapList, Resource<ConfigMap>> configMaps;

    Fabric8(KubernetesClient client) {
        this.client = client;
        MixedOperation<ConfigMap, ConfigMapList, Resource<ConfigMap>> everywhere = client.configMaps();
        configMaps = everywhere.inNamespace(NAMESPACE);
    }

    public static void main(String[] arguments) {
        // Without retries: a rejected request fails at once.
        KubernetesClient client = new KubernetesClientBuilder()
                .editOrNewConfig().withRequestRetryBackoffLimit(0).endConfig()
                .build();
        Fabric8 fabric8 = new Fabric8(client);
        Fabric8Informers informers = new Fabric8Informers(client, fabric8);
        Checks checks = new Checks("fabric8");
        checks.run("create, get, not found, already exists", fabric8::createAndGet);
        checks.run("invalid objects: 422 with causes; dry run", fabric8::invalid);
        checks.run("lists with label and field selectors", fabric8::selectors);
        checks.run("lists in pages, with a continue token that expires", fabric8::pages);
        checks.run("update, and the conflict of an update with an old version", fabric8::conflict);
        checks.run("merge, JSON and strategic merge patches", fabric8::patches);
        checks.run("server-side apply: managers, conflict, force", fabric8::apply);
        checks.run("status and scale of a Deployment", fabric8::statusAndScale);
        checks.run("delete in the background, in the foreground, and with orphans", fabric8::propagation);
        checks.run("delete of a collection by selector, and of a pod", fabric8::collection);
        checks.run("watch from a version, and 410 from an expired one", informers::watches);
        checks.run("informer: events, cut watches, an expired version", informers::informer);
        checks.run("wait for a condition, which watches", informers::waits);
        checks.run("CRD, and custom objects with status and scale", informers::customResources);
        checks.run("requests without a valid token: 401 if the server requires tokens", informers::credentials);
        checks.exit();
    }

    /** Injects a fault with the endpoints of `serve --fault-endpoints`. */
    void fault(String fault) {
        client.raw("/faults/" + fault, "POST", "");
    }

    /** Fails unless the request is rejected with this HTTP status and this reason of a Status object. */
    static Status rejected(Checks.Check request, int code, String reason) throws Exception {
        try {
            request.run();
        } catch (KubernetesClientException error) {
            equal(error.getCode(), code);
            equal(error.getStatus().getReason(), reason);
            return error.getStatus();
        }
        throw new AssertionError("not rejected with " + code);
    }

    static ConfigMap configMap(String name, Map<String, String> data, Map<String, String> labels) {
        return new ConfigMapBuilder()
                .withNewMetadata().withName(name).withNamespace(NAMESPACE).withLabels(labels).endMetadata()
                .withData(data)
                .build();
    }

    ConfigMap create(String name, Map<String, String> data, Map<String, String> labels) {
        return configMaps.resource(configMap(name, data, labels)).create();
    }

    NonNamespaceOperation<ConfigMap, ConfigMapList, Resource<ConfigMap>> configMaps() {
        return configMaps;
    }

    static List<String> names(List<ConfigMap> items) {
        return items.stream().map(item -> item.getMetadata().getName()).toList();
    }

    static Deployment deployment(String name, String container) {
        Map<String, String> labels = Map.of("app", name);
        return new DeploymentBuilder()
                .withNewMetadata().withName(name).withNamespace(NAMESPACE).endMetadata()
                .withNewSpec()
                .withReplicas(2)
                .withNewSelector().withMatchLabels(labels).endSelector()
                .withNewTemplate()
                .withNewMetadata().withLabels(labels).endMetadata()
                .withNewSpec().addNewContainer().withName(container).withImage("main:1").endContainer().endSpec()
                .endTemplate()
                .endSpec()
                .build();
    }

    private void createAndGet() throws Exception {
        client.resource(new NamespaceBuilder().withNewMetadata().withName(NAMESPACE).endMetadata().build()).create();
        ConfigMap created = create("first", Map.of("a", "1"), Map.of("app", "first"));
        equal(configMaps.withName("first").get(), created);
        equal(created.getData(), Map.of("a", "1"));
        equal(configMaps.withName("missing").get(), null);
        rejected(() -> configMaps.withName("missing").edit(item -> item), 404, "NotFound");
        rejected(() -> create("first", Map.of(), Map.of()), 409, "AlreadyExists");
    }

    private void invalid() throws Exception {
        Deployment body = deployment("invalid", "Not A Name");
        Status status = rejected(() -> client.resource(body).create(), 422, "Invalid");
        equal(status.getDetails().getCauses().get(0).getField(), "spec.template.spec.containers[0].name");
        configMaps.resource(configMap("dry", Map.of(), Map.of())).dryRun(true).create();
        equal(configMaps.withName("dry").get(), null);
    }

    private void selectors() throws Exception {
        for (int index = 0; index < 4; index++) {
            String part = index % 2 == 0 ? "even" : "odd";
            create("select-" + index, Map.of(), Map.of("of", "select", "part", part));
        }
        var selected = configMaps.withLabel("of", "select");
        equal(names(selected.withLabel("part", "even").list().getItems()), List.of("select-0", "select-2"));
        equal(names(selected.withLabelNotIn("part", "even").list().getItems()), List.of("select-1", "select-3"));
        var named = configMaps.withField("metadata.name", "select-3");
        equal(names(named.list().getItems()), List.of("select-3"));
        rejected(() -> configMaps.withField("data.a", "1").list(), 400, "BadRequest");
    }

    private void pages() throws Exception {
        for (int index = 0; index < 5; index++) {
            create("page-" + index, Map.of(), Map.of());
        }
        List<String> all = names(configMaps.list().getItems());
        List<String> paged = new ArrayList<>();
        String token = null;
        do {
            ConfigMapList page = configMaps.list(
                    new ListOptionsBuilder().withLimit(2L).withContinue(token).build());
            paged.addAll(names(page.getItems()));
            Long remaining = page.getMetadata().getRemainingItemCount();
            equal(remaining == null ? 0 : remaining, (long) (all.size() - paged.size()));
            token = page.getMetadata().getContinue();
        } while (token != null && !token.isEmpty());
        equal(paged, all);
        var first = new ListOptionsBuilder().withLimit(2L).build();
        String expired = configMaps.list(first).getMetadata().getContinue();
        create("page-5", Map.of(), Map.of());
        fault("compact");
        var next = new ListOptionsBuilder().withLimit(2L).withContinue(expired).build();
        rejected(() -> configMaps.list(next), 410, "Expired");
    }

    private void conflict() throws Exception {
        ConfigMap old = create("update", Map.of("a", "1"), Map.of());
        configMaps.withName("update").edit(item -> new ConfigMapBuilder(item).addToData("a", "2").build());
        old.setData(Map.of("a", "3"));
        rejected(() -> configMaps.resource(old).update(), 409, "Conflict");
    }

    private void patches() throws Exception {
        create("patch", Map.of("a", "1", "b", "1"), Map.of());
        Resource<ConfigMap> resource = configMaps.withName("patch");
        String merge = "{\"data\": {\"a\": null, \"c\": \"1\"}}";
        ConfigMap merged = resource.patch(PatchContext.of(PatchType.JSON_MERGE), merge);
        equal(merged.getData(), Map.of("b", "1", "c", "1"));
        String operations =
                """
                [{"op": "test", "path": "/data/b", "value": "1"},
                 {"op": "replace", "path": "/data/b", "value": "2"}]
                """;
        ConfigMap replaced = resource.patch(PatchContext.of(PatchType.JSON), operations);
        equal(replaced.getData(), Map.of("b", "2", "c", "1"));
        rejected(() -> resource.patch(PatchContext.of(PatchType.JSON), operations), 422, "Invalid");
        client.resource(deployment("strategic", "main")).create();
        String second =
                """
                {"spec": {"template": {"spec": {"containers": [{"name": "second", "image": "second:1"}]}}}}
                """;
        Deployment patched = client.apps().deployments().inNamespace(NAMESPACE).withName("strategic")
                .patch(PatchContext.of(PatchType.STRATEGIC_MERGE), second);
        List<Container> containers = patched.getSpec().getTemplate().getSpec().getContainers();
        equal(containers.stream().map(Container::getName).toList(), List.of("second", "main"));
    }

    private void apply() throws Exception {
        ConfigMap one = configMap("apply", Map.of("a", "1"), Map.of());
        ConfigMap applied = configMaps.resource(one).fieldManager("one").serverSideApply();
        equal(applied.getMetadata().getManagedFields().size(), 1);
        equal(applied.getMetadata().getManagedFields().get(0).getManager(), "one");
        ConfigMap two = configMap("apply", Map.of("a", "2"), Map.of());
        Status status = rejected(
                () -> configMaps.resource(two).fieldManager("two").serverSideApply(), 409, "Conflict");
        equal(status.getDetails().getCauses().get(0).getField(), ".data.a");
        ConfigMap forced = configMaps.resource(two).fieldManager("two").forceConflicts().serverSideApply();
        equal(forced.getData(), Map.of("a", "2"));
    }

    private void statusAndScale() throws Exception {
        Deployment created = client.resource(deployment("scaled", "main")).create();
        Deployment changed = new DeploymentBuilder(created)
                .editSpec().withReplicas(9).endSpec()
                .editStatus().withReplicas(2).withObservedGeneration(1L).endStatus()
                .build();
        Deployment updated = client.resource(changed).updateStatus();
        equal(updated.getStatus().getReplicas(), 2);
        equal(updated.getSpec().getReplicas(), 2);
        var deployments = client.apps().deployments().inNamespace(NAMESPACE);
        var scale = deployments.withName("scaled").scale();
        equal(scale.getStatus().getSelector(), "app=scaled");
        equal(deployments.withName("scaled").scale(5).getSpec().getReplicas(), 5);
        equal(deployments.withName("scaled").get().getSpec().getReplicas(), 5);
    }

    private void propagation() throws Exception {
        for (DeletionPropagation policy : DeletionPropagation.values()) {
            String owner = named("owner", policy.toString());
            String dependent = named("dependent", policy.toString());
            String uid = create(owner, Map.of(), Map.of()).getMetadata().getUid();
            ConfigMap body = new ConfigMapBuilder(configMap(dependent, Map.of(), Map.of()))
                    .editMetadata()
                    .addNewOwnerReference()
                    .withApiVersion("v1").withKind("ConfigMap").withName(owner).withUid(uid)
                    .withBlockOwnerDeletion(true)
                    .endOwnerReference()
                    .endMetadata()
                    .build();
            configMaps.resource(body).create();
            configMaps.withName(owner).withPropagationPolicy(policy).delete();
            eventually(() -> configMaps.withName(owner).get() == null, () -> policy + ": owner deleted");
            if (policy == DeletionPropagation.ORPHAN) {
                equal(configMaps.withName(dependent).get().getMetadata().getOwnerReferences(), List.of());
            } else {
                eventually(() -> configMaps.withName(dependent).get() == null, () -> policy + ": dependent deleted");
            }
        }
    }

    private void collection() throws Exception {
        configMaps.withLabel("of", "select").delete();
        eventually(() -> configMaps.withLabel("of", "select").list().getItems().isEmpty(), () -> "deleted");
        Pod pod = new PodBuilder()
                .withNewMetadata().withName("pod").withNamespace(NAMESPACE).endMetadata()
                .withNewSpec().addNewContainer().withName("a").withImage("a:1").endContainer().endSpec()
                .build();
        client.resource(pod).create();
        equal(client.resource(pod).delete().size(), 1);
        eventually(() -> client.pods().inNamespace(NAMESPACE).list().getItems().isEmpty(), () -> "pod removed");
    }
}
