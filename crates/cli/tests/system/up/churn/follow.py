# Lists objects in pages, and then follows them, until one of a certain name comes.
import sys

from kubernetes import client, config, watch

kubeconfig, kind, last = sys.argv[1:]
config.load_kube_config(config_file=kubeconfig)

if kind == "ConfigMap":
    function, where = client.CoreV1Api().list_namespaced_config_map, ["default"]

    def metadata(thing):
        return thing.metadata.name, thing.metadata.resource_version

    def page(listed):
        return listed.items, listed.metadata.resource_version, listed.metadata._continue

else:
    function = client.CustomObjectsApi().list_cluster_custom_object
    where = ["projectcalico.org", "v3", "globalnetworksets"]

    def metadata(thing):
        return thing["metadata"]["name"], thing["metadata"]["resourceVersion"]

    def page(listed):
        head = listed["metadata"]
        return listed["items"], head["resourceVersion"], head.get("continue")


token = None
while True:
    items, revision, token = page(function(*where, limit=50, **({"_continue": token} if token else {})))
    for item in items:
        print("ITEM", *metadata(item))
    if not token:
        break
print("LISTED", "-", revision, flush=True)

for event in watch.Watch().stream(function, *where, resource_version=revision):
    name, version = metadata(event["object"])
    print(event["type"], name, version, flush=True)
    if name == last:
        break
