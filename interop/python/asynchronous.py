"""The asyncio client, kubernetes_asyncio: concurrent requests, patches, watches."""

import asyncio

from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client.exceptions import ApiException

import checks
from checks import NAMESPACE, config_map, deployment, equal

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


async def rejected(request, status, reason):
    """Fails unless the request raises an exception with this HTTP status and this reason."""
    try:
        await request
    except ApiException as error:
        equal(error.status, status)
        assert f'"reason":"{reason}"' in error.body, error.body
        return
    raise AssertionError(f"not rejected with {status}")


async def requests(core):
    """concurrent creates, lists in pages, selectors, errors"""
    await core.create_namespace({"metadata": {"name": NAMESPACE}})
    names = [f"object-{index:02}" for index in range(20)]
    bodies = [config_map(name, of="requests") for name in names]
    await asyncio.gather(*(core.create_namespaced_config_map(NAMESPACE, body) for body in bodies))
    listed, token = [], None
    while token != "":
        options = {"label_selector": "of=requests", "limit": 7}
        if token:
            options["_continue"] = token
        page = await core.list_namespaced_config_map(NAMESPACE, **options)
        listed += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    equal(listed, names)
    await rejected(core.read_namespaced_config_map("missing", NAMESPACE), 404, "NotFound")
    again = core.create_namespaced_config_map(NAMESPACE, bodies[0])
    await rejected(again, 409, "AlreadyExists")


async def patches(core):
    """merge patch, conflict of an old version, apply with force"""
    old = await core.read_namespaced_config_map("object-00", NAMESPACE)
    patch = core.patch_namespaced_config_map
    changed = await patch("object-00", NAMESPACE, {"data": {"a": "1"}}, _content_type=MERGE)
    equal(changed.data, {"a": "1"})
    conflict = core.replace_namespaced_config_map("object-00", NAMESPACE, old)
    await rejected(conflict, 409, "Conflict")
    body = config_map("applied", {"a": "1"})
    await patch("applied", NAMESPACE, body, _content_type=APPLY, field_manager="one")
    body["data"]["a"] = "2"
    options = {"_content_type": APPLY, "field_manager": "two"}
    await rejected(patch("applied", NAMESPACE, body, **options), 409, "Conflict")
    forced = await patch("applied", NAMESPACE, body, force=True, **options)
    equal(forced.data, {"a": "2"})


async def scale(core):
    """scale and status of a Deployment"""
    apps = client.AppsV1Api(core.api_client)
    await apps.create_namespaced_deployment(NAMESPACE, deployment("scaled", 2))
    body = {"spec": {"replicas": 4}}
    changed = await apps.patch_namespaced_deployment_scale(
        "scaled", NAMESPACE, body, _content_type=MERGE
    )
    equal(changed.spec.replicas, 4)
    body = {"status": {"replicas": 4}}
    updated = await apps.patch_namespaced_deployment_status(
        "scaled", NAMESPACE, body, _content_type=MERGE
    )
    equal(updated.status.replicas, 4)


async def watches(core):
    """watch that resumes after a cut, and 410 from an expired version"""
    listed = await core.list_namespaced_config_map(NAMESPACE)
    version, seen = listed.metadata.resource_version, []

    async def fault(path):
        request = core.api_client.call_api(f"/faults/{path}", "POST", auth_settings=["BearerToken"])
        await request

    async def write():
        await core.create_namespaced_config_map(NAMESPACE, config_map("watched"))
        await fault("cut-watches")
        await core.delete_namespaced_config_map("watched", NAMESPACE)

    writer = asyncio.create_task(write())
    async with watch.Watch() as stream:
        events = stream.stream(
            core.list_namespaced_config_map, NAMESPACE, resource_version=version
        )
        async for event in events:
            seen.append(event["type"])
            if event["type"] == "DELETED":
                break
    await writer
    equal(seen, ["ADDED", "DELETED"])
    await fault("forget-window")
    options = {"resource_version": version, "timeout_seconds": checks.TIMEOUT}
    async with watch.Watch() as stream:
        try:
            async for event in stream.stream(core.list_namespaced_config_map, NAMESPACE, **options):
                raise AssertionError(f"an expired version was accepted: {event}")
        except ApiException as error:
            equal(error.status, 410)


async def main():
    await config.load_kube_config()
    async with client.ApiClient() as api:
        core = client.CoreV1Api(api)
        run = checks.Checks("python-asyncio")
        for function in [requests, patches, scale, watches]:
            await run.run_async(function, core)
    run.exit()


if __name__ == "__main__":
    asyncio.run(main())
