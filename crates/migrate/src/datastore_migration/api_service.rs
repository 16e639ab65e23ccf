//! The registration of the aggregated API server for the newer group. Without it the API server serves the group from its
//! definitions.

use kube::api::{ApiResource, DeleteParams, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Result};

const NAME: &str = "v3.projectcalico.org";

/// On registrations that the API server made itself, for groups with definitions.
const AUTOMATIC: &str = "kube-aggregator.kubernetes.io/automanaged";

pub(super) struct ApiServices(Api<DynamicObject>);

impl ApiServices {
    pub(super) fn new(client: &Client) -> Self {
        let kind = GroupVersionKind::gvk("apiregistration.k8s.io", "v1", "APIService");
        Self(Api::all_with(client.clone(), &ApiResource::from_gvk(&kind)))
    }

    /// The registration of an aggregated API server, ready to be made again; nothing if there is none.
    pub(super) async fn aggregated(&self) -> Result<Option<DynamicObject>> {
        let found = self
            .0
            .get_opt(NAME)
            .await?
            .filter(|found| !is_automatic(found));
        Ok(found.map(|mut service| {
            let metadata = &mut service.metadata;
            metadata.resource_version = None;
            metadata.uid = None;
            metadata.creation_timestamp = None;
            metadata.managed_fields = None;
            if let Some(fields) = service.data.as_object_mut() {
                fields.remove("status");
            }
            service
        }))
    }

    pub(super) async fn delete(&self) -> Result<()> {
        match self.0.delete(NAME, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// Makes a registration again, unless somebody did.
    pub(super) async fn restore(&self, saved: &DynamicObject) -> Result<()> {
        match self.0.get_opt(NAME).await? {
            Some(found) if !is_automatic(&found) => return Ok(()),
            Some(_) => self.delete().await?,
            None => {}
        }
        match self.0.create(&PostParams::default(), saved).await {
            Ok(_) => Ok(()),
            // The API server was quicker with one of its own: the next attempt finds that.
            Err(error) => Err(error),
        }
    }
}

fn is_automatic(service: &DynamicObject) -> bool {
    let labels = service.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(AUTOMATIC))
}
