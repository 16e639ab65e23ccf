//! Virtual machines of `KubeVirt`, which keep their addresses while no pod runs them.

use std::collections::BTreeSet;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use tortie_error::Causes;

/// How many are listed at a time.
const PAGE: u32 = 500;

/// The virtual machines, and instances that belong to none, by namespace and name. None if these cannot be listed, as
/// where there are no such kinds.
pub async fn list_machines(cluster: &kube::Client) -> Option<BTreeSet<(String, String)>> {
    let mut found = BTreeSet::new();
    for (kind, plural) in [
        ("VirtualMachine", "virtualmachines"),
        ("VirtualMachineInstance", "virtualmachineinstances"),
    ] {
        let kind = GroupVersionKind::gvk("kubevirt.io", "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let api: Api<DynamicObject> = Api::all_with(cluster.clone(), &resource);
        let mut parameters = ListParams::default().limit(PAGE);
        loop {
            let page = match api.list_metadata(&parameters).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::debug!(plural, error = %Causes(&error), "Virtual machines cannot be listed");
                    return None;
                }
            };
            for object in page.items {
                let metadata = object.metadata;
                let owners = metadata.owner_references.unwrap_or_default();
                if owners.iter().all(|owner| owner.kind != "VirtualMachine") {
                    let namespace = metadata.namespace.unwrap_or_default();
                    found.insert((namespace, metadata.name.unwrap_or_default()));
                }
            }
            match page.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => parameters.continue_token = Some(next),
                None => break,
            }
        }
    }
    Some(found)
}
