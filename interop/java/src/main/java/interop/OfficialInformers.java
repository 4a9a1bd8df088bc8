package interop;

import static interop.Checks.NAMESPACE;
import static interop.Checks.equal;
import static interop.Checks.eventually;
import static interop.Checks.value;
import static interop.Official.rejected;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedIndexInformer;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.informer.cache.Lister;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.ApiextensionsV1Api;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.apis.CustomObjectsApi;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import io.kubernetes.client.openapi.models.V1CustomResourceDefinition;
import io.kubernetes.client.util.CallGeneratorParams;
import io.kubernetes.client.util.Config;
import io.kubernetes.client.util.Yaml;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesObject;
import io.kubernetes.client.util.generic.options.PatchOptions;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

/** The official client: informers, custom resources, credentials. */
final class OfficialInformers {
    private static final String GROUP = "interop.example";
    private static final String CRD = "widgets.interop.example";

    private final ApiClient client;
    private final Official official;
    private final ApiextensionsV1Api extensions;
    private final CustomObjectsApi custom;
    private final DynamicKubernetesApi widgets;

    OfficialInformers(ApiClient client, Official official) {
        this.client = client;
        this.official = official;
        extensions = new ApiextensionsV1Api(client);
        custom = new CustomObjectsApi(client);
        widgets = new DynamicKubernetesApi(GROUP, "v1", "widgets", client);
    }

    /** Records the events of an informer as text. */
    private record Recorder(List<String> seen) implements ResourceEventHandler<V1ConfigMap> {
        private void record(String event, V1ConfigMap item) {
            seen.add(event + " " + item.getMetadata().getName() + " " + value(item.getData(), "a"));
        }

        @Override
        public void onAdd(V1ConfigMap item) {
            record("add", item);
        }

        @Override
        public void onUpdate(V1ConfigMap old, V1ConfigMap item) {
            record("update", item);
        }

        @Override
        public void onDelete(V1ConfigMap item, boolean finalStateUnknown) {
            record("delete", item);
        }

        void received(String event) throws Exception {
            eventually(() -> seen.contains(event), () -> event + " in " + seen);
        }
    }

    private okhttp3.Call call(CallGeneratorParams parameters) {
        try {
            return official.list()
                    .labelSelector("of=informer")
                    .resourceVersion(parameters.resourceVersion)
                    .timeoutSeconds(parameters.timeoutSeconds)
                    .watch(parameters.watch)
                    .buildCall(null);
        } catch (ApiException error) {
            throw new IllegalStateException(error);
        }
    }

    void informer() throws Exception {
        SharedInformerFactory factory = new SharedInformerFactory(client);
        SharedIndexInformer<V1ConfigMap> informer =
                factory.sharedIndexInformerFor(this::call, V1ConfigMap.class, V1ConfigMapList.class);
        Recorder recorder = new Recorder(new CopyOnWriteArrayList<>());
        informer.addEventHandler(recorder);
        Map<String, String> labels = Map.of("of", "informer");
        official.create("informer-1", Map.of("a", "1"), labels);
        factory.startAllRegisteredInformers();
        recorder.received("add informer-1 1");
        official.patch("informer-1", "{\"data\": {\"a\": \"2\"}}", V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH);
        recorder.received("update informer-1 2");
        official.fault("cut-watches");
        official.create("informer-2", Map.of("a", "1"), labels);
        recorder.received("add informer-2 1");
        // The informer misses the delete, and its version has expired when it watches again.
        official.fault("stall-watches?on=true");
        new CoreV1Api(client).deleteNamespacedConfigMap("informer-1", NAMESPACE).execute();
        official.fault("forget-window");
        official.fault("stall-watches?on=false");
        recorder.received("delete informer-1 2");
        Lister<V1ConfigMap> lister = new Lister<>(informer.getIndexer(), NAMESPACE);
        equal(lister.list().stream().map(item -> item.getMetadata().getName()).toList(), List.of("informer-2"));
        factory.stopAllRegisteredInformers();
    }

    private static DynamicKubernetesObject widget(String name, int size) {
        String json = """
                {"apiVersion": "interop.example/v1", "kind": "Widget", "spec": {"size": %d},
                 "metadata": {"name": "%s", "namespace": "%s"}}
                """;
        return new DynamicKubernetesObject(JsonParser.parseString(json.formatted(size, name, NAMESPACE))
                .getAsJsonObject());
    }

    private boolean established() throws Exception {
        var conditions = extensions.readCustomResourceDefinition(CRD).execute().getStatus().getConditions();
        return conditions != null
                && conditions.stream()
                        .anyMatch(it -> it.getType().equals("Established") && it.getStatus().equals("True"));
    }

    void customResources() throws Exception {
        V1CustomResourceDefinition crd = Yaml.loadAs(Checks.WIDGET_CRD, V1CustomResourceDefinition.class);
        extensions.createCustomResourceDefinition(crd).execute();
        eventually(this::established, () -> "CRD established");
        widgets.create(widget("one", 1)).throwsApiException();
        var small = widgets.create(widget("zero", 0));
        equal(small.getHttpStatusCode(), 422);
        equal(small.getStatus().getDetails().getCauses().get(0).getField(), "spec.size");
        V1Patch size = new V1Patch("{\"spec\": {\"size\": 2, \"replicas\": 1}}");
        var patched = widgets.patch(NAMESPACE, "one", V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, size);
        equal(specOf(patched.throwsApiException().getObject()).get("size").getAsInt(), 2);
        // Numbers of these maps are floating-point numbers, also those that are sent.
        Map<String, Object> one = asMap(
                custom.getNamespacedCustomObject(GROUP, "v1", NAMESPACE, "widgets", "one").execute());
        one.put("status", Map.of("replicas", 3));
        custom.replaceNamespacedCustomObjectStatus(GROUP, "v1", NAMESPACE, "widgets", "one", one).execute();
        Map<String, Object> scale = asMap(
                custom.getNamespacedCustomObjectScale(GROUP, "v1", NAMESPACE, "widgets", "one").execute());
        equal(asMap(scale.get("status")).get("replicas"), 3.0);
        // A Scale has Go types, for which 3.0 is no integer.
        scale.remove("status");
        scale.put("spec", Map.of("replicas", 3));
        custom.replaceNamespacedCustomObjectScale(GROUP, "v1", NAMESPACE, "widgets", "one", scale).execute();
        DynamicKubernetesObject scaled = widgets.get(NAMESPACE, "one").throwsApiException().getObject();
        equal(specOf(scaled).get("replicas").getAsInt(), 3);
    }

    private static JsonObject specOf(DynamicKubernetesObject object) {
        return object.getRaw().getAsJsonObject("spec");
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> asMap(Object object) {
        return (Map<String, Object>) object;
    }

    void dynamicApi() throws Exception {
        PatchOptions options = new PatchOptions();
        options.setFieldManager("dynamic");
        V1Patch body = new V1Patch(widget("two", 2).getRaw().toString());
        widgets.patch(NAMESPACE, "two", V1Patch.PATCH_FORMAT_APPLY_YAML, body, options).throwsApiException();
        var missing = widgets.get(NAMESPACE, "missing");
        equal(missing.getHttpStatusCode(), 404);
        equal(missing.getStatus().getReason(), "NotFound");
        SharedInformerFactory factory = new SharedInformerFactory(client);
        SharedIndexInformer<DynamicKubernetesObject> informer =
                factory.sharedIndexInformerFor(widgets, DynamicKubernetesObject.class, 0, NAMESPACE);
        factory.startAllRegisteredInformers();
        eventually(() -> informer.getIndexer().list().size() == 2, () -> "two widgets in the cache");
        extensions.deleteCustomResourceDefinition(CRD).execute();
        eventually(
                () -> extensions.listCustomResourceDefinition().execute().getItems().isEmpty(), () -> "CRD deleted");
        factory.stopAllRegisteredInformers();
    }

    void credentials() throws Exception {
        ApiClient stranger = Config.defaultClient();
        boolean secure = stranger.getBasePath().startsWith("https:");
        if (secure) {
            stranger.setApiKeyPrefix("Bearer");
            stranger.setApiKey("wrong");
        }
        CoreV1Api core = new CoreV1Api(stranger);
        if (secure) {
            rejected(() -> core.listNamespace().execute(), 401, "Unauthorized");
        } else {
            core.listNamespace().execute();
        }
    }
}
