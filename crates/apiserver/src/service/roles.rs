//! The roles and bindings that every server has, where this server keeps roles itself.

use serde_json::Value;

use super::write::Body;
use super::{Service, Write};
use crate::access::roles::defaults;
use crate::failure::{Reason, Result};
use crate::options::WriteOptions;
use crate::registry::Native;

impl Service {
    /// Makes the roles and bindings that are not there, and completes the others.
    pub async fn prepare_roles(&self) -> Result<()> {
        for (native, objects) in [
            (Native::ClusterRole, defaults::cluster_roles()),
            (
                Native::ClusterRoleBinding,
                defaults::cluster_role_bindings(),
            ),
        ] {
            let Some(of) = self.native(native) else {
                return Ok(());
            };
            let options = WriteOptions::default();
            for object in objects {
                self.prepare_role(of.write(None, &options), object).await?;
            }
        }
        Ok(())
    }

    async fn prepare_role(&self, write: Write<'_>, wanted: Value) -> Result<()> {
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        match self.get(write.of, None, name).await {
            Ok(there) => {
                if let Some(new) = defaults::completed(&there, &wanted) {
                    self.change(write, name, &Body::Whole(new)).await?;
                }
                Ok(())
            }
            Err(failure) if failure.reason == Reason::NotFound => {
                self.create(write, wanted).await.map(drop)
            }
            // It grants nothing, and others are not to wait for it.
            Err(failure) => {
                tracing::error!(kind = write.of.kind, name, %failure, "A default role or binding cannot be completed");
                Ok(())
            }
        }
    }
}
