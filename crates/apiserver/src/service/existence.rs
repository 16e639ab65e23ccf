//! Whether objects are there that tokens of service accounts are bound to.

use async_trait::async_trait;

use super::Service;
use crate::access::tokens::{Existence, Reference};
use crate::failure::{Reason, Result};
use crate::registry::Native;

#[async_trait]
impl Existence for Service {
    async fn is_there(&self, kind: &str, namespace: &str, reference: &Reference) -> Result<bool> {
        let natives = [Native::Pod, Native::Secret, Native::ServiceAccount];
        let mut types = natives.into_iter().filter_map(|native| self.native(native));
        let Some(of) = types.find(|of| of.kind == kind) else {
            return Ok(false);
        };
        match self.get(of, Some(namespace), &reference.name).await {
            Ok(object) => {
                let metadata = &object["metadata"];
                let is_going = metadata.get("deletionTimestamp").is_some();
                Ok(metadata["uid"] == *reference.uid && !is_going)
            }
            Err(failure) if failure.reason == Reason::NotFound => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}
