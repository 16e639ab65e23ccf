//! Objects of Kubernetes, read once.

use anyhow::Result;
use kube::api::{Api, ListParams};
use serde::de::DeserializeOwned;

/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// All objects of a type, read in parts.
pub(super) async fn all<K>(cluster: &kube::Client) -> Result<Vec<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api = Api::<K>::all(cluster.clone());
    let mut items = Vec::new();
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&parameters).await?;
        items.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(items),
        }
    }
}
