//! Virtual machines of `KubeVirt`, which keep their addresses while their pods come and go.
//!
//! A machine runs as an instance, and that in a pod whose name says so; an instance may also be there on its own. While a
//! machine moves to another node it has two pods, and a label of the second one names the migration.
//!
//! # Invariants
//! - Of pods whose names are others, and where no cluster can be asked, nothing is asked.
//! - What cannot be told is an error, never a reason to release an address.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use tortie_api::ipam_configuration::VmAddressPersistence;
use tortie_ipam::{attribute, machine_handle};

use crate::cluster::{self, CustomKind};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::ipam;
use crate::request::Request;

/// What the names of pods of machines begin with.
const POD_PREFIX: &str = "virt-launcher-";

/// On pods that a machine is to move to: the migration.
const MIGRATION_LABEL: &str = "kubevirt.io/migrationJobUID";

const MACHINE: CustomKind = CustomKind {
    group: "kubevirt.io",
    version: "v1",
    kind: "VirtualMachine",
    plural: "virtualmachines",
};

const INSTANCE: CustomKind = CustomKind {
    kind: "VirtualMachineInstance",
    plural: "virtualmachineinstances",
    ..MACHINE
};

/// Facts about the holder of an address, beside [`attribute::VMI_NAME`].
const INSTANCE_UID: &str = "vmi-uid";
const MACHINE_UID: &str = "vm-uid";
const MIGRATION_UID: &str = "vmim-uid";

/// A pod that runs an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Launcher {
    pod: String,
    namespace: String,
    instance: String,
    instance_uid: String,
    migration: Option<String>,
}

/// The machine that a pod is about to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    /// The handle of its addresses.
    pub(crate) handle: String,
    /// Whether it is to move to the pod, and runs in another one until then.
    pub(crate) is_target: bool,
    /// What the holder of its addresses is known by, beside the pod.
    pub(crate) facts: BTreeMap<String, String>,
}

/// The machine that a pod ceases to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    /// The handle of its addresses.
    pub(crate) handle: String,
    /// Whether it keeps its addresses.
    pub(crate) is_kept: bool,
}

/// The machine whose addresses the pod is to have; none if the pod is to have its own.
pub(crate) async fn arriving(context: &Context<'_>, pod: Option<&Pod>) -> Result<Option<Machine>> {
    let Some(name) = launching_pod(context) else {
        return Ok(None);
    };
    let launcher = if let Some(pod) = pod {
        Launcher::read(pod)?
    } else {
        let pod = read_pod(context, name).await?;
        let namespace = &context.identity.namespace;
        let missing = || format!("there is no pod {namespace}/{name}");
        let pod = pod.ok_or_else(|| Error::new(Code::Datastore, missing()))?;
        Launcher::read(&pod)?
    };
    let Some(launcher) = launcher else {
        return Ok(None);
    };
    if !is_persistence_on(context).await? {
        return launcher.without_persistence().map(|()| None);
    }
    let instance = launcher
        .find(context, &INSTANCE, &launcher.instance)
        .await?;
    let instance = launcher.checked(instance)?;
    let machine = match machine_of(&instance) {
        None => None,
        Some(name) => {
            let found = launcher.find(context, &MACHINE, &name).await?;
            Some(found.ok_or_else(|| launcher.missing(&MACHINE, &name))?)
        }
    };
    Ok(Some(
        launcher.machine(&context.config.name, machine.as_ref()),
    ))
}

/// The machine that the pod ceases to run. None where nothing is known of one, and where another container of the pod
/// runs it by now.
pub(crate) async fn leaving(context: &Context<'_>) -> Result<Option<Left>> {
    let Some(name) = launching_pod(context) else {
        return Ok(None);
    };
    let Some(pod) = read_pod(context, name).await? else {
        tracing::info!("The pod of a virtual machine is gone; the machine's addresses stay");
        return Ok(None);
    };
    let container = cluster::container_of(&pod);
    if !container.is_empty() && container != context.identity.container_id {
        return Ok(None);
    }
    let Some(launcher) = Launcher::read(&pod)? else {
        return Ok(None);
    };
    let is_kept = is_persistence_on(context).await? && {
        let instance = launcher
            .find(context, &INSTANCE, &launcher.instance)
            .await?;
        let machine = match launcher.possible_machine(instance.as_ref()) {
            None => None,
            Some(name) => launcher.find(context, &MACHINE, &name).await?,
        };
        is_alive(instance.as_ref(), machine.as_ref())
    };
    let handle = launcher.handle(&context.config.name);
    Ok(Some(Left { handle, is_kept }))
}

/// The handle of the addresses of the machine that the pod runs.
pub(crate) async fn handle(context: &Context<'_>) -> Result<Option<String>> {
    let Some(name) = launching_pod(context) else {
        return Ok(None);
    };
    let pod = read_pod(context, name).await?;
    let launcher = pod.as_ref().map(Launcher::read).transpose()?.flatten();
    Ok(launcher.map(|launcher| launcher.handle(&context.config.name)))
}

impl Launcher {
    /// What a pod says of the instance that it runs; none if it runs none.
    fn read(pod: &Pod) -> Result<Option<Self>> {
        let metadata = &pod.metadata;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let Some(owner) = owner(metadata, &INSTANCE, true) else {
            return Ok(None);
        };
        let (pod, namespace) = (text(&metadata.name), text(&metadata.namespace));
        if owner.name.is_empty() || owner.uid.is_empty() {
            let message = format!(
                "the pod {namespace}/{pod} belongs to a VirtualMachineInstance, but its `ownerReferences` has `name` `{}` and `uid` `{}`: neither may be empty",
                owner.name, owner.uid
            );
            return Err(Error::new(Code::Datastore, message));
        }
        let labels = metadata.labels.as_ref();
        let migration = labels.and_then(|labels| labels.get(MIGRATION_LABEL));
        Ok(Some(Self {
            pod,
            namespace,
            instance: owner.name.clone(),
            instance_uid: owner.uid.clone(),
            migration: migration.filter(|uid| !uid.is_empty()).cloned(),
        }))
    }

    fn handle(&self, network: &str) -> String {
        machine_handle(network, &self.namespace, &self.instance)
    }

    /// A pod that a machine is to move to has no use for an address of its own.
    fn without_persistence(&self) -> Result<()> {
        let Some(migration) = &self.migration else {
            return Ok(());
        };
        let Self { namespace, pod, .. } = self;
        let message = format!(
            "the pod {namespace}/{pod} is the target of the live migration {migration}, and `kubeVirtVMAddressPersistence` of IPAMConfiguration `default` is Disabled: machines can move only if they keep their addresses"
        );
        Err(Error::new(Code::Address, message))
    }

    /// The instance that was found, if it is the pod's.
    fn checked(&self, instance: Option<ObjectMeta>) -> Result<ObjectMeta> {
        let instance = instance.ok_or_else(|| self.missing(&INSTANCE, &self.instance))?;
        let found = instance.uid.as_deref().unwrap_or_default();
        if found != self.instance_uid {
            let Self { namespace, pod, .. } = self;
            let message = format!(
                "the pod {namespace}/{pod} belongs to the VirtualMachineInstance {namespace}/{} with the `uid` {}, but the one of this name has the `uid` {found}",
                self.instance, self.instance_uid
            );
            return Err(Error::new(Code::Datastore, message));
        }
        Ok(instance)
    }

    fn machine(&self, network: &str, machine: Option<&ObjectMeta>) -> Machine {
        let uid = machine.and_then(|machine| machine.uid.clone());
        let facts = [
            (attribute::VMI_NAME, Some(self.instance.clone())),
            (INSTANCE_UID, Some(self.instance_uid.clone())),
            (MACHINE_UID, uid),
            (MIGRATION_UID, self.migration.clone()),
        ];
        Machine {
            handle: self.handle(network),
            is_target: self.migration.is_some(),
            facts: facts
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?)))
                .collect(),
        }
    }

    /// The machine that decides what becomes of the addresses; none if the instance is there on its own. If the instance
    /// is gone, that is one of the same name.
    fn possible_machine(&self, instance: Option<&ObjectMeta>) -> Option<String> {
        match instance {
            Some(instance) => machine_of(instance),
            None => Some(self.instance.clone()),
        }
    }

    async fn find(
        &self,
        context: &Context<'_>,
        kind: &CustomKind,
        name: &str,
    ) -> Result<Option<ObjectMeta>> {
        let (datastore, environment) = (&context.datastore, context.environment);
        let client = datastore.cluster(context.config, environment).await?;
        cluster::find_metadata(&client, kind, &self.namespace, name).await
    }

    fn missing(&self, kind: &CustomKind, name: &str) -> Error {
        let Self { namespace, pod, .. } = self;
        let message = format!(
            "the pod {namespace}/{pod} belongs to the {} {namespace}/{name}, which does not exist",
            kind.kind
        );
        Error::new(Code::Datastore, message)
    }
}

/// Whether a machine, or an instance on its own, is there and is to stay.
fn is_alive(instance: Option<&ObjectMeta>, machine: Option<&ObjectMeta>) -> bool {
    let decides = match instance {
        Some(instance) if machine_of(instance).is_none() => Some(instance),
        _ => machine,
    };
    decides.is_some_and(|object| object.deletion_timestamp.is_none())
}

/// The machine that an instance is of.
fn machine_of(instance: &ObjectMeta) -> Option<String> {
    let owner = owner(instance, &MACHINE, false)?;
    Some(owner.name.clone()).filter(|name| !name.is_empty())
}

fn owner<'a>(
    metadata: &'a ObjectMeta,
    kind: &CustomKind,
    must_control: bool,
) -> Option<&'a OwnerReference> {
    let version = format!("{}/{}", kind.group, kind.version);
    metadata.owner_references.iter().flatten().find(|owner| {
        owner.kind == kind.kind
            && owner.api_version == version
            && (!must_control || owner.controller == Some(true))
    })
}

/// The pod, if it may run a machine and somebody can be asked about it.
fn launching_pod<'a>(context: &'a Context<'_>) -> Option<&'a str> {
    let pod = context.identity.pod.as_deref();
    pod.filter(|pod| pod.starts_with(POD_PREFIX) && context.knows_namespace())
}

/// Whether a request may be about a pod that runs a virtual machine.
pub(crate) fn is_launching(request: &Request) -> bool {
    let pod = request.arguments.get("K8S_POD_NAME");
    pod.is_some_and(|pod| pod.starts_with(POD_PREFIX))
}

async fn read_pod(context: &Context<'_>, name: &str) -> Result<Option<Pod>> {
    let (datastore, environment) = (&context.datastore, context.environment);
    let client = datastore.cluster(context.config, environment).await?;
    cluster::find_pod(&client, &context.identity.namespace, name).await
}

async fn is_persistence_on(context: &Context<'_>) -> Result<bool> {
    let persistence = ipam::configuration(context).await?;
    let persistence = persistence.kube_virt_vm_address_persistence;
    Ok(persistence != Some(VmAddressPersistence::Disabled))
}

#[cfg(test)]
mod tests;
