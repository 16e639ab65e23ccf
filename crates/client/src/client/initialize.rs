//! What every datastore must hold before it is used: the cluster's identity and the tiers that always exist.

use tortie_api::cluster_information::ClusterInformationSpec;
use tortie_api::tier::{self, TierSpec};
use tortie_api::{ClusterInformation, Tier};

use super::Client;
use tortie_store::{Error, Result};

impl Client {
    /// Makes sure that the cluster's identity and the built-in tiers exist. `version` and each part of `cluster_type`
    /// are recorded unless empty.
    pub async fn ensure_initialized(&self, version: &str, cluster_type: &str) -> Result<()> {
        let information = self.ensure_cluster_information(version, cluster_type).await;
        let mut tiers = Ok(());
        for (name, order, action) in tier::BUILT_IN {
            let spec = TierSpec {
                order: Some(order),
                default_action: Some(action),
            };
            match self.create(Tier::new("", name, spec).into()).await {
                Ok(_) | Err(Error::AlreadyExists(_) | Error::Unauthorized(_)) => {}
                Err(error) => tiers = tiers.and(Err(error)),
            }
        }
        information.and(tiers)
    }

    async fn ensure_cluster_information(&self, version: &str, cluster_type: &str) -> Result<()> {
        let new = ClusterInformation::new("", "default", ClusterInformationSpec::default());
        let completed = self.modify_or_create(new, |information: &mut ClusterInformation| {
            complete(&mut information.spec, version, cluster_type);
            Ok(())
        });
        completed.await.map(drop)
    }
}

fn complete(spec: &mut ClusterInformationSpec, version: &str, cluster_type: &str) {
    if !version.is_empty() {
        version.clone_into(&mut spec.calico_version);
    }
    if spec.cluster_guid.is_empty() {
        spec.cluster_guid = uuid::Uuid::new_v4().simple().to_string();
    }
    spec.datastore_ready.get_or_insert(true);
    for part in cluster_type.split(',').filter(|part| !part.is_empty()) {
        if !spec.cluster_type.split(',').any(|known| known == part) {
            if !spec.cluster_type.is_empty() {
                spec.cluster_type.push(',');
            }
            spec.cluster_type.push_str(part);
        }
    }
}
