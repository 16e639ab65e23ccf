//! How the cluster is set up.

use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Result};
use tortie_api::crd::Group;

/// The names of the definitions of a group.
pub(super) async fn definitions(client: &Client, group: Group) -> Result<Vec<String>> {
    let list = definition_api(client).list(&ListParams::default()).await?;
    let of_group = list.items.into_iter().filter(|definition| {
        let found = definition.data.pointer("/spec/group");
        found.is_some_and(|found| found == group.name())
    });
    Ok(of_group
        .filter_map(|definition| definition.metadata.name)
        .collect())
}

/// The definitions of all groups.
pub(super) fn definition_api(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// Whether an operator looks after the installation. Without permission to ask, none does.
pub(super) async fn has_operator(client: &Client) -> bool {
    let kind = GroupVersionKind::gvk("operator.tigera.io", "v1", "Installation");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    matches!(api.get_opt("default").await, Ok(Some(_)))
}
