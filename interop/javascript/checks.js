// Checks with a name. Each prints one line; the program fails if one of them fails.

import assert from 'node:assert/strict';
import { ApiException } from '@kubernetes/client-node';

export const NAMESPACE = 'clients';
const TIMEOUT = 20_000;

/** Runs the checks in order: pairs of a name and a function. Ends the process with 1 if one of them failed. */
export async function run(program, checks) {
    let failed = 0;
    for (const [name, check] of Object.entries(checks)) {
        try {
            await check();
            console.log(`ok     ${program}: ${name}`);
        } catch (error) {
            failed += 1;
            console.log(`FAILED ${program}: ${name}`);
            console.log(error);
        }
    }
    const passed = Object.keys(checks).length - failed;
    console.log(`${program}: ${passed} checks passed, ${failed} failed`);
    process.exit(failed ? 1 : 0);
}

/** Waits until the condition, which may be asynchronous, is true. */
export async function eventually(condition, what) {
    const deadline = Date.now() + TIMEOUT;
    while (!(await condition())) {
        assert.ok(Date.now() < deadline, `not within ${TIMEOUT} ms: ${what()}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}

/** Fails unless the promise is rejected with this HTTP status and reason. Returns the Status object. */
export async function rejected(promise, code, reason) {
    const error = await promise.then(
        () => assert.fail(`not rejected with ${code}`),
        (error) => error,
    );
    assert.equal(error.code, code, error);
    assert.ok(error instanceof ApiException, error);
    // The client decodes no body of a 401.
    const status = typeof error.body === 'string' ? JSON.parse(error.body) : error.body;
    assert.equal(status?.reason, code === 401 ? undefined : reason);
    return status;
}

export function configMap(name, data = {}, labels = {}) {
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: NAMESPACE, labels }, data };
}

export function deployment(name, replicas = 1) {
    const labels = { app: name };
    const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'main:1' }] } };
    return {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name, namespace: NAMESPACE },
        spec: { replicas, selector: { matchLabels: labels }, template },
    };
}

/** A CustomResourceDefinition with the subresources status and scale. */
export function widgetCrd() {
    const integer = { type: 'integer' };
    const spec = {
        type: 'object',
        required: ['size'],
        properties: { size: { type: 'integer', minimum: 1 }, replicas: integer },
    };
    const status = { type: 'object', properties: { replicas: integer } };
    const version = {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
            status: {},
            scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
        schema: { openAPIV3Schema: { type: 'object', properties: { spec, status } } },
    };
    return {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: 'widgets.interop.example' },
        spec: {
            group: 'interop.example',
            scope: 'Namespaced',
            names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
            versions: [version],
        },
    };
}

export function widget(name, size) {
    return {
        apiVersion: 'interop.example/v1',
        kind: 'Widget',
        metadata: { name, namespace: NAMESPACE },
        spec: { size },
    };
}
