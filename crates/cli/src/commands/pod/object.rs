//! Pods as Kubernetes' clients see them.

use std::net::IpAddr;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::args::PodRun;

/// What HTTP says of what is not there, and of what is there already.
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;

/// What the pod's only container is called, and its image, which nobody pulls.
const CONTAINER: &str = "namespace";
const IMAGE: &str = "tortie-pod";

/// The objects of an API server.
pub(super) struct Objects<'a>(pub(super) &'a Client);

impl Objects<'_> {
    pub(super) fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.0.clone(), namespace)
    }

    /// Makes a pod that does not run yet, and its namespace.
    pub(super) async fn create(&self, namespace: &str, args: &PodRun, node: &str) -> Result<()> {
        self.ensure_namespace(namespace).await?;
        let name = &args.name.name;
        let ports: Vec<Value> = args
            .serve
            .iter()
            .map(|service| json!({"containerPort": service.port, "protocol": service.protocol.upper()}))
            .collect();
        let pod = serde_json::from_value(json!({
            "metadata": {"namespace": namespace, "name": name, "labels": args.labels()},
            "spec": {
                "nodeName": node,
                "containers": [{"name": CONTAINER, "image": IMAGE, "ports": ports}],
            },
        }))?;
        let created = self
            .pods(namespace)
            .create(&PostParams::default(), &pod)
            .await;
        match created {
            Err(kube::Error::Api(status)) if status.code == CONFLICT => {
                bail!(
                    "there is a pod {namespace}/{name} already: `tortie pod delete {namespace}/{name}`"
                )
            }
            created => {
                created.with_context(|| format!("making the pod {namespace}/{name}"))?;
                Ok(())
            }
        }
    }

    async fn ensure_namespace(&self, name: &str) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.0.clone());
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        match namespaces.create(&PostParams::default(), &namespace).await {
            Err(kube::Error::Api(status)) if status.code == CONFLICT => Ok(()),
            created => {
                created.with_context(|| format!("making the namespace {name}"))?;
                Ok(())
            }
        }
    }

    /// Tells that a pod runs, as a kubelet does.
    pub(super) async fn report_running(
        &self,
        namespace: &str,
        name: &str,
        addresses: &[IpAddr],
    ) -> Result<()> {
        let condition = |kind: &str| json!({"type": kind, "status": "True"});
        let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition);
        let status = json!({"status": {
            "phase": "Running",
            "podIP": addresses.first(),
            "podIPs": addresses.iter().map(|ip| json!({"ip": ip})).collect::<Vec<_>>(),
            "conditions": conditions,
            "containerStatuses": [{
                "name": CONTAINER, "image": IMAGE, "imageID": IMAGE,
                "ready": true, "started": true, "restartCount": 0, "state": {"running": {}},
            }],
        }});
        let (pods, options) = (self.pods(namespace), PatchParams::default());
        let patched = pods
            .patch_status(name, &options, &Patch::Merge(status))
            .await;
        patched.with_context(|| format!("the status of the pod {namespace}/{name}"))?;
        Ok(())
    }

    /// Deletes a pod. One that is gone is no error.
    pub(super) async fn delete(&self, namespace: &str, name: &str) -> Result<()> {
        let options = DeleteParams::default().grace_period(0);
        match self.pods(namespace).delete(name, &options).await {
            Err(kube::Error::Api(status)) if status.code == NOT_FOUND => Ok(()),
            deleted => {
                deleted.with_context(|| format!("deleting the pod {namespace}/{name}"))?;
                Ok(())
            }
        }
    }
}
