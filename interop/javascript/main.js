// The official client: typed and generic API, watches, the informer.

import assert from 'node:assert/strict';
import * as k8s from '@kubernetes/client-node';
import { NAMESPACE, configMap, deployment, eventually, rejected, run, widget, widgetCrd } from './checks.js';

const kubeconfig = new k8s.KubeConfig();
kubeconfig.loadFromDefault();
const core = kubeconfig.makeApiClient(k8s.CoreV1Api);
const apps = kubeconfig.makeApiClient(k8s.AppsV1Api);
const custom = kubeconfig.makeApiClient(k8s.CustomObjectsApi);
const extensions = kubeconfig.makeApiClient(k8s.ApiextensionsV1Api);
const objects = k8s.KubernetesObjectApi.makeApiClient(kubeconfig);
const { JsonPatch, MergePatch, StrategicMergePatch, ServerSideApply } = k8s.PatchStrategy;

const namespace = NAMESPACE;
const path = `/api/v1/namespaces/${namespace}/configmaps`;
const widgets = { group: 'interop.example', version: 'v1', namespace, plural: 'widgets' };

/** Options that select the kind of a patch. */
const as = (strategy) => k8s.setHeaderOptions('Content-Type', strategy);
const names = (list) => list.items.map((item) => item.metadata.name);
const list = (options = {}) => core.listNamespacedConfigMap({ namespace, ...options });
const create = (name, data, labels) =>
    core.createNamespacedConfigMap({ namespace, body: configMap(name, data, labels) });
const read = (name) => core.readNamespacedConfigMap({ name, namespace });
const remove = (name, options = {}) => core.deleteNamespacedConfigMap({ name, namespace, ...options });
const patch = (name, body, strategy, options = {}) =>
    core.patchNamespacedConfigMap({ name, namespace, body, ...options }, as(strategy));

/** Injects a fault with the endpoints of `serve --fault-endpoints`. */
async function fault(fault) {
    const url = new URL(`/faults/${fault}`, kubeconfig.getCurrentCluster().server);
    const request = new k8s.RequestContext(url.href, k8s.HttpMethod.POST);
    await kubeconfig.applySecurityAuthentication(request);
    const response = await new k8s.IsomorphicFetchHttpLibrary().send(request).toPromise();
    assert.equal(response.httpStatusCode, 200);
}

async function createAndGet() {
    await core.createNamespace({ body: { metadata: { name: namespace } } });
    const created = await create('first', { a: '1' }, { app: 'first' });
    assert.deepEqual(await read('first'), created);
    assert.deepEqual(created.data, { a: '1' });
    await rejected(read('missing'), 404, 'NotFound');
    await rejected(create('first'), 409, 'AlreadyExists');
}

async function invalid() {
    const body = deployment('invalid');
    body.spec.template.spec.containers[0].name = 'Not A Name';
    const status = await rejected(apps.createNamespacedDeployment({ namespace, body }), 422, 'Invalid');
    assert.equal(status.details.causes[0].field, 'spec.template.spec.containers[0].name');
    await core.createNamespacedConfigMap({ namespace, body: configMap('dry'), dryRun: 'All' });
    await rejected(read('dry'), 404, 'NotFound');
}

async function selectors() {
    for (const index of [0, 1, 2, 3]) {
        await create(`select-${index}`, {}, { of: 'select', part: index % 2 ? 'odd' : 'even' });
    }
    const even = await list({ labelSelector: 'of=select,part=even' });
    assert.deepEqual(names(even), ['select-0', 'select-2']);
    const odd = await list({ labelSelector: 'of in (select),part!=even' });
    assert.deepEqual(names(odd), ['select-1', 'select-3']);
    assert.deepEqual(names(await list({ fieldSelector: 'metadata.name=select-3' })), ['select-3']);
    await rejected(list({ fieldSelector: 'data.a=1' }), 400, 'BadRequest');
}

async function pages() {
    for (const index of [0, 1, 2, 3, 4]) {
        await create(`page-${index}`);
    }
    const all = names(await list());
    const paged = [];
    let token;
    do {
        const page = await list({ limit: 2, _continue: token });
        paged.push(...names(page));
        assert.equal(page.metadata.remainingItemCount ?? 0, all.length - paged.length);
        token = page.metadata._continue;
    } while (token);
    assert.deepEqual(paged, all);
    token = (await list({ limit: 2 })).metadata._continue;
    await create('page-5');
    await fault('compact');
    await rejected(list({ limit: 2, _continue: token }), 410, 'Expired');
}

async function conflict() {
    const old = await create('update', { a: '1' });
    const changed = await read('update');
    changed.data.a = '2';
    const updated = await core.replaceNamespacedConfigMap({ name: 'update', namespace, body: changed });
    assert.notEqual(updated.metadata.resourceVersion, old.metadata.resourceVersion);
    old.data.a = '3';
    await rejected(core.replaceNamespacedConfigMap({ name: 'update', namespace, body: old }), 409, 'Conflict');
}

async function patches() {
    await create('patch', { a: '1', b: '1' });
    const merged = await patch('patch', { data: { a: null, c: '1' } }, MergePatch);
    assert.deepEqual(merged.data, { b: '1', c: '1' });
    const operations = [
        { op: 'test', path: '/data/b', value: '1' },
        { op: 'replace', path: '/data/b', value: '2' },
    ];
    const replaced = await patch('patch', operations, JsonPatch);
    assert.deepEqual(replaced.data, { b: '2', c: '1' });
    await rejected(patch('patch', operations, JsonPatch), 422, 'Invalid');
    await apps.createNamespacedDeployment({ namespace, body: deployment('strategic') });
    const body = { spec: { template: { spec: { containers: [{ name: 'second', image: 'second:1' }] } } } };
    const request = { name: 'strategic', namespace, body };
    const patched = await apps.patchNamespacedDeployment(request, as(StrategicMergePatch));
    const containers = patched.spec.template.spec.containers.map((container) => container.name);
    assert.deepEqual(containers, ['second', 'main']);
}

async function apply() {
    const applied = await patch('apply', configMap('apply', { a: '1' }), ServerSideApply, { fieldManager: 'one' });
    const managers = applied.metadata.managedFields.map((entry) => [entry.manager, entry.operation]);
    assert.deepEqual(managers, [['one', 'Apply']]);
    const other = configMap('apply', { a: '2' });
    const unforced = patch('apply', other, ServerSideApply, { fieldManager: 'two' });
    const status = await rejected(unforced, 409, 'Conflict');
    assert.equal(status.details.causes[0].field, '.data.a');
    const forced = await patch('apply', other, ServerSideApply, { fieldManager: 'two', force: true });
    assert.deepEqual(forced.data, { a: '2' });
}

async function statusAndScale() {
    const name = 'scaled';
    await apps.createNamespacedDeployment({ namespace, body: deployment(name, 2) });
    const body = { status: { replicas: 2, observedGeneration: 1 }, spec: { replicas: 9 } };
    const updated = await apps.patchNamespacedDeploymentStatus({ name, namespace, body }, as(MergePatch));
    assert.deepEqual([updated.status.replicas, updated.spec.replicas], [2, 2]);
    const scale = await apps.readNamespacedDeploymentScale({ name, namespace });
    assert.deepEqual([scale.spec.replicas, scale.status.selector], [2, 'app=scaled']);
    scale.spec.replicas = 5;
    await apps.replaceNamespacedDeploymentScale({ name, namespace, body: scale });
    assert.equal((await apps.readNamespacedDeployment({ name, namespace })).spec.replicas, 5);
}

async function propagation() {
    for (const policy of ['Background', 'Foreground', 'Orphan']) {
        const owner = await create(`owner-${policy.toLowerCase()}`);
        const { name, uid } = owner.metadata;
        const dependent = configMap(`dependent-${policy.toLowerCase()}`);
        const reference = { apiVersion: 'v1', kind: 'ConfigMap', name, uid, blockOwnerDeletion: true };
        dependent.metadata.ownerReferences = [reference];
        await core.createNamespacedConfigMap({ namespace, body: dependent });
        await remove(name, { propagationPolicy: policy });
        const exists = async (name) => names(await list()).includes(name);
        await eventually(async () => !(await exists(name)), () => `${policy}: owner deleted`);
        if (policy === 'Orphan') {
            assert.equal((await read(dependent.metadata.name)).metadata.ownerReferences, undefined);
        } else {
            const deleted = async () => !(await exists(dependent.metadata.name));
            await eventually(deleted, () => `${policy}: dependent deleted`);
        }
    }
}

async function collection() {
    const labelSelector = 'of=select';
    await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector });
    assert.deepEqual((await list({ labelSelector })).items, []);
    const pod = { metadata: { name: 'pod' }, spec: { containers: [{ name: 'a', image: 'a:1' }] } };
    await core.createNamespacedPod({ namespace, body: pod });
    const deleted = await core.deleteNamespacedPod({ name: 'pod', namespace });
    assert.ok(deleted.metadata.deletionTimestamp);
    const gone = async () => (await core.listNamespacedPod({ namespace })).items.length === 0;
    await eventually(gone, () => 'pod removed');
}

/** Watches from a version until the delete of the object or the end of the stream. Returns the events. */
function watchUntilDelete(resourceVersion, fieldSelector) {
    const events = [];
    return new Promise((resolve, reject) => {
        const record = (type, object) => {
            events.push([type, object.data?.a ?? object.code]);
            if (type === 'DELETED') resolve(events);
        };
        const done = (error) => (error ? reject(error) : resolve(events));
        new k8s.Watch(kubeconfig).watch(path, { resourceVersion, fieldSelector }, record, done);
    });
}

async function watches() {
    const version = (await list()).metadata.resourceVersion;
    await create('watched', { a: '1' });
    await patch('watched', { data: { a: '2' } }, MergePatch);
    await remove('watched');
    const events = await watchUntilDelete(version, 'metadata.name=watched');
    assert.deepEqual(events, [['ADDED', '1'], ['MODIFIED', '2'], ['DELETED', '2']]);
    await fault('forget-window');
    assert.deepEqual(await watchUntilDelete(version), [['ERROR', 410]]);
}

async function informer() {
    const seen = [];
    const labelSelector = 'of=informer';
    const informer = k8s.makeInformer(kubeconfig, path, () => list({ labelSelector }), labelSelector);
    for (const verb of ['add', 'update', 'delete']) {
        informer.on(verb, (item) => seen.push(`${verb} ${item.metadata.name} ${item.data.a}`));
    }
    informer.on('error', (error) => seen.push(`error ${error}`));
    const received = (event) => eventually(() => seen.includes(event), () => `${event} in ${seen}`);
    const labels = { of: 'informer' };
    await create('informer-1', { a: '1' }, labels);
    await informer.start();
    await received('add informer-1 1');
    await patch('informer-1', { data: { a: '2' } }, MergePatch);
    await received('update informer-1 2');
    await fault('cut-watches');
    await create('informer-2', { a: '1' }, labels);
    await received('add informer-2 1');
    // The informer misses the delete, and its version has expired when it watches again.
    await fault('stall-watches?on=true');
    await remove('informer-1');
    await fault('forget-window');
    await fault('stall-watches?on=false');
    await received('delete informer-1 2');
    assert.deepEqual(names({ items: informer.list() }), ['informer-2']);
    assert.equal(seen.length, 4, String(seen));
    await informer.stop();
}

async function customResources() {
    const name = 'widgets.interop.example';
    await extensions.createCustomResourceDefinition({ body: widgetCrd() });
    const established = async () => {
        const crd = await extensions.readCustomResourceDefinition({ name });
        return crd.status?.conditions?.some((it) => it.type === 'Established' && it.status === 'True');
    };
    await eventually(established, () => 'CRD established');
    await custom.createNamespacedCustomObject({ ...widgets, body: widget('one', 1) });
    const small = custom.createNamespacedCustomObject({ ...widgets, body: widget('zero', 0) });
    assert.equal((await rejected(small, 422, 'Invalid')).details.causes[0].field, 'spec.size');
    const one = { ...widgets, name: 'one' };
    const size = { spec: { size: 2 } };
    const patched = await custom.patchNamespacedCustomObject({ ...one, body: size }, as(MergePatch));
    assert.equal(patched.spec.size, 2);
    const status = { status: { replicas: 3 } };
    await custom.patchNamespacedCustomObjectStatus({ ...one, body: status }, as(MergePatch));
    const replicas = { spec: { replicas: 3 } };
    const scale = await custom.patchNamespacedCustomObjectScale({ ...one, body: replicas }, as(MergePatch));
    assert.deepEqual([scale.spec.replicas, scale.status.replicas], [3, 3]);
}

async function genericApi() {
    const applied = await objects.patch(widget('two', 2), undefined, undefined, 'generic', true, ServerSideApply);
    assert.equal(applied.spec.size, 2);
    const listed = await objects.list('interop.example/v1', 'Widget', namespace);
    assert.deepEqual(names(listed), ['one', 'two']);
    await rejected(objects.read(widget('missing', 1)), 404, 'NotFound');
    await objects.delete(widgetCrd());
    const gone = async () => (await extensions.listCustomResourceDefinition()).items.length === 0;
    await eventually(gone, () => 'CRD deleted');
}

async function credentials() {
    const stranger = new k8s.KubeConfig();
    const cluster = kubeconfig.getCurrentCluster();
    stranger.loadFromClusterAndUser(cluster, { name: 'stranger', token: 'wrong' });
    const request = stranger.makeApiClient(k8s.CoreV1Api).listNamespace();
    if (cluster.server.startsWith('https:')) {
        await rejected(request, 401, 'Unauthorized');
    } else {
        await request;
    }
}

await run('javascript', {
    'create, get, not found, already exists': createAndGet,
    'invalid objects: 422 with causes; dry run': invalid,
    'lists with label and field selectors': selectors,
    'lists in pages, with a continue token that expires': pages,
    'update, and the conflict of an update with an old version': conflict,
    'merge, JSON and strategic merge patches': patches,
    'server-side apply: managers, conflict, force': apply,
    'status and scale of a Deployment': statusAndScale,
    'delete in the background, in the foreground, and with orphans': propagation,
    'delete of a collection by selector, and of a pod': collection,
    'watch from a version, and 410 from an expired one': watches,
    'informer: events, cut watches, an expired version': informer,
    'CRD, and custom objects with status and scale': customResources,
    'generic API: apply, list, errors': genericApi,
    'requests without a valid token: 401 if the server requires tokens': credentials,
});
