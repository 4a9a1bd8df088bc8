package interop;

import static interop.Checks.NAMESPACE;
import static interop.Checks.equal;
import static interop.Checks.eventually;
import static interop.Checks.value;
import static interop.Fabric8.names;
import static interop.Fabric8.rejected;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.GenericKubernetesResourceBuilder;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.Status;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.Watch;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

/** The fabric8 client: watches (over WebSocket), informers, custom resources, credentials. */
final class Fabric8Informers {
    private final KubernetesClient client;
    private final Fabric8 fabric8;

    Fabric8Informers(KubernetesClient client, Fabric8 fabric8) {
        this.client = client;
        this.fabric8 = fabric8;
    }

    /** Records the events of a watch or an informer as text. */
    private record Recorder(List<String> seen) implements ResourceEventHandler<ConfigMap>, Watcher<ConfigMap> {
        Recorder() {
            this(new CopyOnWriteArrayList<>());
        }

        private void record(String event, ConfigMap item) {
            seen.add(event + " " + item.getMetadata().getName() + " " + value(item.getData(), "a"));
        }

        @Override
        public void onAdd(ConfigMap item) {
            record("add", item);
        }

        @Override
        public void onUpdate(ConfigMap old, ConfigMap item) {
            record("update", item);
        }

        @Override
        public void onDelete(ConfigMap item, boolean finalStateUnknown) {
            record("delete", item);
        }

        @Override
        public void eventReceived(Action action, ConfigMap item) {
            record(action.toString(), item);
        }

        @Override
        public void onClose(WatcherException cause) {
            seen.add(cause.isHttpGone() ? "gone" : "closed: " + cause);
        }

        void received(String event) throws Exception {
            eventually(() -> seen.contains(event), () -> event + " in " + seen);
        }
    }

    private void change(String name, String value) {
        fabric8.configMaps().withName(name).edit(item -> new ConfigMapBuilder(item).addToData("a", value).build());
    }

    void watches() throws Exception {
        String version = fabric8.configMaps().list().getMetadata().getResourceVersion();
        fabric8.create("watched", Map.of("a", "1"), Map.of());
        change("watched", "2");
        fabric8.configMaps().withName("watched").delete();
        var options = new ListOptionsBuilder().withResourceVersion(version).build();
        Recorder recorder = new Recorder();
        try (Watch watch = fabric8.configMaps().withField("metadata.name", "watched").watch(options, recorder)) {
            recorder.received("DELETED watched 2");
        }
        equal(recorder.seen(), List.of("ADDED watched 1", "MODIFIED watched 2", "DELETED watched 2"));
        fabric8.fault("forget-window");
        Recorder expired = new Recorder();
        try (Watch watch = fabric8.configMaps().watch(options, expired)) {
            expired.received("gone");
        }
    }

    void informer() throws Exception {
        Map<String, String> labels = Map.of("of", "informer");
        fabric8.create("informer-1", Map.of("a", "1"), labels);
        Recorder recorder = new Recorder();
        try (SharedIndexInformer<ConfigMap> informer = fabric8.configMaps().withLabels(labels).inform(recorder)) {
            recorder.received("add informer-1 1");
            change("informer-1", "2");
            recorder.received("update informer-1 2");
            fabric8.fault("cut-watches");
            fabric8.create("informer-2", Map.of("a", "1"), labels);
            recorder.received("add informer-2 1");
            // The informer misses the delete, and its version has expired when it watches again.
            fabric8.fault("stall-watches?on=true");
            fabric8.configMaps().withName("informer-1").delete();
            fabric8.fault("forget-window");
            fabric8.fault("stall-watches?on=false");
            recorder.received("delete informer-1 2");
            equal(names(informer.getStore().list()), List.of("informer-2"));
        }
    }

    void waits() throws Exception {
        fabric8.create("waited", Map.of("a", "1"), Map.of());
        Thread writer = new Thread(() -> change("waited", "2"));
        writer.start();
        ConfigMap changed = fabric8.configMaps().withName("waited")
                .waitUntilCondition(
                        item -> item != null && "2".equals(value(item.getData(), "a")), 20, TimeUnit.SECONDS);
        equal(changed.getData(), Map.of("a", "2"));
        writer.join();
    }

    private static GenericKubernetesResource widget(String name, int size) {
        return new GenericKubernetesResourceBuilder()
                .withApiVersion("interop.example/v1")
                .withKind("Widget")
                .withNewMetadata().withName(name).withNamespace(NAMESPACE).endMetadata()
                .addToAdditionalProperties("spec", Map.of("size", size))
                .build();
    }

    void customResources() throws Exception {
        var crds = client.apiextensions().v1().customResourceDefinitions();
        CustomResourceDefinition crd = client.getKubernetesSerialization()
                .unmarshal(Checks.WIDGET_CRD, CustomResourceDefinition.class);
        crds.resource(crd).create();
        crds.resource(crd).waitUntilCondition(
                it -> it.getStatus() != null && it.getStatus().getConditions().stream()
                        .anyMatch(condition -> condition.getType().equals("Established")
                                && condition.getStatus().equals("True")),
                20, TimeUnit.SECONDS);
        var widgets = client.genericKubernetesResources("interop.example/v1", "Widget").inNamespace(NAMESPACE);
        widgets.resource(widget("one", 1)).create();
        Status status = rejected(() -> widgets.resource(widget("zero", 0)).create(), 422, "Invalid");
        equal(status.getDetails().getCauses().get(0).getField(), "spec.size");
        PatchContext merge = PatchContext.of(PatchType.JSON_MERGE);
        String size = "{\"spec\": {\"size\": 2, \"replicas\": 1}}";
        GenericKubernetesResource patched = widgets.withName("one").patch(merge, size);
        equal(patched.<Integer>get("spec", "size"), 2);
        patched.setAdditionalProperty("status", Map.of("replicas", 3));
        equal(widgets.resource(patched).updateStatus().<Integer>get("status", "replicas"), 3);
        widgets.withName("one").scale(3);
        var scale = widgets.withName("one").scale();
        equal(List.of(scale.getSpec().getReplicas(), scale.getStatus().getReplicas()), List.of(3, 3));
        widgets.resource(widget("two", 2)).fieldManager("generic").serverSideApply();
        try (SharedIndexInformer<GenericKubernetesResource> informer = widgets.inform()) {
            eventually(() -> informer.getStore().list().size() == 2, () -> "two widgets in the cache");
        }
        crds.resource(crd).delete();
        eventually(() -> crds.list().getItems().isEmpty(), () -> "CRD deleted");
    }

    void credentials() throws Exception {
        Config config = client.getConfiguration();
        boolean secure = config.getMasterUrl().startsWith("https:");
        Config wrong = new ConfigBuilder(config).withOauthToken(secure ? "wrong" : null).build();
        try (KubernetesClient stranger = new KubernetesClientBuilder().withConfig(wrong).build()) {
            if (secure) {
                rejected(() -> stranger.namespaces().list(), 401, "Unauthorized");
            } else {
                stranger.namespaces().list();
            }
        }
    }
}
