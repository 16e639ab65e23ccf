//! Namespaces, where this server keeps them itself: what is made with one, and what goes with it.

use serde_json::{Value, json};

use super::write::{DeleteOptions, Deleted, Written};
use super::{Service, lifecycle};
use crate::failure::{Failure, Reason, Result};
use crate::options::{ListOptions, WriteOptions};
use crate::registry::{Content, Native, ResourceType};
use crate::service::{Unguarded, Write};
use crate::storage::Mode;

/// The namespaces of a new server. They cannot be deleted.
const BUILT_IN: &[&str] = &["default", "kube-system"];

/// The account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";

impl Service {
    /// Makes the namespaces of a new server, if they are not there, with their accounts.
    pub async fn prepare_namespaces(&self) -> Result<()> {
        let Some(of) = self.native(Native::Namespace) else {
            return Ok(());
        };
        for name in BUILT_IN {
            let object = json!({"metadata": {"name": name}});
            ignore_existing(
                self.create(of.write(None, &WriteOptions::default()), object)
                    .await,
            )?;
        }
        // A crash may have been between a namespace and its account.
        for namespace in self.storage.list(of, None).await?.items {
            if namespace["metadata"].get("deletionTimestamp").is_none() {
                self.add_account(&namespace).await?;
            }
        }
        Ok(())
    }

    /// The type of a kind of Kubernetes itself, if it is served.
    pub(crate) fn native(&self, native: Native) -> Option<&ResourceType> {
        let mut types = self.registry.types().iter();
        types.find(|found| found.content == Content::Native(native))
    }

    /// Objects can be made only in a namespace that is there and will stay, if this server keeps namespaces.
    pub(super) async fn check_namespace(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
    ) -> Result<()> {
        let (Some(namespaces), Some(namespace)) = (self.native(Native::Namespace), namespace)
        else {
            return Ok(());
        };
        let found = self.storage.get(namespaces, "", namespace).await?;
        if found["metadata"].get("deletionTimestamp").is_some() {
            let what = format!(
                "is forbidden: unable to create new content in namespace {namespace} because it is being terminated"
            );
            return Err(Failure::about(
                Reason::Forbidden,
                of.group,
                of.plural,
                "",
                what,
            ));
        }
        Ok(())
    }

    /// Gives a namespace the account of pods that name none, as Kubernetes' controllers do.
    pub(super) async fn add_account(&self, namespace: &Value) -> Result<()> {
        let (Some(of), Some(name)) = (
            self.native(Native::ServiceAccount),
            namespace["metadata"]["name"].as_str(),
        ) else {
            return Ok(());
        };
        let object = json!({"metadata": {"name": DEFAULT_ACCOUNT}});
        let options = WriteOptions::default();
        ignore_existing(Box::pin(self.create(of.write(Some(name), &options), object)).await)
    }

    /// Closes a namespace, deletes what is in it, and then the namespace itself. What is held back keeps it.
    pub(super) async fn delete_namespace(
        &self,
        of: &ResourceType,
        object: &Value,
        mode: Mode,
    ) -> Result<Deleted> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if BUILT_IN.contains(&name) {
            let what = "is forbidden: this namespace may not be deleted";
            return Err(Failure::about(
                Reason::Forbidden,
                of.group,
                of.plural,
                name,
                what,
            ));
        }
        if mode.is_dry_run {
            return Ok(Deleted::Gone(object.clone()));
        }
        let mut closed = lifecycle::mark_deleted(object, &super::write::now());
        closed["status"]["phase"] = json!("Terminating");
        let closed = if lifecycle::is_unchanged(object, &closed) {
            closed
        } else {
            self.storage.update(of, closed, mode).await?
        };
        let options = DeleteOptions::default();
        let mut is_empty = true;
        for inner in self
            .registry
            .all()
            .into_iter()
            .filter(|inner| inner.is_namespaced && inner.is_stored())
        {
            let all = ListOptions::default();
            let deleted = self.delete_all(inner, Some(name), &all, &options, &Unguarded);
            is_empty &= deleted.await?.are_gone;
        }
        if !is_empty || lifecycle::has_finalizers(&closed) {
            return Ok(Deleted::Marked(closed));
        }
        self.storage.delete(of, &closed, mode).await?;
        Ok(Deleted::Gone(closed))
    }
}

impl Service {
    /// Deletes a namespace that was only waiting for the object that is now gone.
    pub(super) async fn finish_namespace(&self, name: &str) {
        let Some(of) = self.native(Native::Namespace) else {
            return;
        };
        let Ok(object) = self.storage.get(of, "", name).await else {
            return;
        };
        if object["metadata"].get("deletionTimestamp").is_some()
            && let Err(failure) = self.delete_namespace(of, &object, Mode::default()).await
        {
            tracing::warn!(namespace = name, %failure, "A namespace is not deleted yet");
        }
    }
}

impl ResourceType {
    /// A write of the server's own.
    pub(super) fn write<'a>(
        &'a self,
        namespace: Option<&'a str>,
        options: &'a WriteOptions,
    ) -> Write<'a> {
        Write {
            of: self,
            namespace,
            is_status: false,
            options,
            agent: "tortie",
            guard: &Unguarded,
        }
    }
}

fn ignore_existing(created: Result<Written>) -> Result<()> {
    match created {
        Err(failure) if failure.reason != Reason::AlreadyExists => Err(failure),
        _ => Ok(()),
    }
}
