//! Everything that the inputs are told, from wherever it comes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use tokio::runtime::Handle;
use tortie_api::{Kind, Resource};
use tortie_store::{Query, Store, StoreSource};
use tortie_sync::{Changed, Followers, Name, Pace, State, Status, Topic, kubernetes};

use super::secrets::Secrets;
use super::workloads::Workloads;
use super::{Options, own_blocks};
use crate::inputs::{KINDS, SecretRef};
use crate::{Inputs, Problem, Update};

/// An object that can be read.
pub(super) enum Input {
    Resource(Resource),
    Service(Box<Service>),
    EndpointSlice(Box<EndpointSlice>),
}

impl From<Resource> for Input {
    fn from(resource: Resource) -> Self {
        Self::Resource(resource)
    }
}

/// What is followed as one.
#[derive(Debug, Clone, Copy)]
enum Of {
    Kind(Kind),
    Service,
    EndpointSlice,
}

/// Follows everything.
pub(super) struct Feed {
    topics: Vec<Of>,
    followers: Followers<Input>,
    status: Status,
    refusals: Vec<String>,
    /// Objects whose newest version cannot be read.
    unreadable: Vec<(Of, Name, Problem)>,
    secrets: Option<Secrets>,
    workloads: Workloads,
}

impl Feed {
    pub(super) fn start(
        options: &Options,
        store: &Arc<dyn Store>,
        cluster: Option<&kube::Client>,
    ) -> Self {
        let mut topics = Vec::new();
        let mut followed = Vec::new();
        for kind in KINDS {
            topics.push(Of::Kind(kind));
            followed.push(match kind {
                Kind::BlockAffinity => own_blocks::topic(store, &options.identity.node),
                _ => StoreSource::topic(store, Query::all(kind)),
            });
        }
        if let Some(cluster) = cluster {
            let services =
                kubernetes::services(cluster, |service| Input::Service(Box::new(service)));
            topics.push(Of::Service);
            followed.push(Topic {
                name: "Service".to_owned(),
                source: Arc::new(services),
                // Who advertises none of their addresses need not be allowed to read them.
                is_optional: true,
            });
            let slices =
                kubernetes::endpoint_slices(cluster, |slice| Input::EndpointSlice(Box::new(slice)));
            topics.push(Of::EndpointSlice);
            followed.push(Topic {
                name: "EndpointSlice".to_owned(),
                source: Arc::new(slices),
                is_optional: true,
            });
        }
        let folder: PathBuf = options.workloads.clone();
        Self {
            topics,
            followers: Followers::start(followed, &Pace::default(), None, &Handle::current()),
            status: Status::default(),
            refusals: Vec::new(),
            unreadable: Vec::new(),
            secrets: cluster.map(|cluster| Secrets::new(cluster, &options.secret_namespace)),
            workloads: Workloads::new(folder),
        }
    }

    /// Waits until something may have changed, and takes nothing.
    pub(super) async fn changed(&mut self) {
        let secrets = async {
            match &mut self.secrets {
                Some(secrets) => secrets.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.followers.changed() => {}
            () = secrets => {}
            () = self.workloads.changed() => {}
        }
    }

    /// Tells the inputs what is new, and whether the plan may be another.
    pub(super) fn take(&mut self, inputs: &mut Inputs) -> bool {
        let was_complete = self.is_complete();
        let mut is_concerned = false;
        if let Some(batch) = self.followers.try_recv() {
            self.status = batch.status;
            self.refusals = batch.refusals;
            for object in batch.objects {
                is_concerned |= self.tell(object, inputs);
            }
        }
        let updates = self.secrets.iter_mut().flat_map(Secrets::take);
        for update in updates.chain(self.workloads.take()) {
            is_concerned |= inputs.update(update);
        }
        is_concerned || self.is_complete() && !was_complete
    }

    fn tell(&mut self, object: Changed<Input>, inputs: &mut Inputs) -> bool {
        let Changed {
            topic, name, state, ..
        } = object;
        let Some(of) = self.topics.get(topic).copied() else {
            return false;
        };
        self.unreadable
            .retain(|(other, known, _)| other.kind() != of.kind() || *known != name);
        let update = match state {
            State::Present(Input::Resource(mut resource)) => {
                resource.set_read_defaults();
                Update::Resource(resource)
            }
            State::Present(Input::Service(service)) => Update::Service(service),
            State::Present(Input::EndpointSlice(slice)) => Update::EndpointSlice(slice),
            State::Absent => of.removal(&name),
            State::Unreadable(reason, _) => {
                let problem = Problem {
                    kind: of.kind(),
                    name: shown(&name),
                    field: "spec".into(),
                    reason: format!(
                        "it cannot be read: {reason}; the last version that could be, if there was one, stays in force"
                    ),
                };
                self.unreadable.push((of, name, problem));
                return true;
            }
        };
        inputs.update(update)
    }

    /// Whether everything has been read once, and may be acted on.
    pub(super) fn is_complete(&self) -> bool {
        self.status == Status::InSync && self.secrets.as_ref().is_none_or(Secrets::is_complete)
    }

    pub(super) fn status(&self) -> Status {
        self.status
    }

    /// What the datastore does not let us read.
    pub(super) fn refusals(&self) -> &[String] {
        &self.refusals
    }

    pub(super) fn unreadable(&self) -> impl Iterator<Item = &Problem> {
        self.unreadable.iter().map(|(_, _, problem)| problem)
    }

    /// Reads these secrets, and no others.
    pub(super) fn follow_secrets(&mut self, wanted: BTreeSet<SecretRef>) {
        if let Some(secrets) = &mut self.secrets {
            secrets.follow(wanted);
        }
    }

    /// Reads workloads from now on, or not any more. Those that there are count at once: a plan without them would end their
    /// sessions. Tells whether the plan may be another.
    pub(super) fn follow_workloads(&mut self, is_wanted: bool, inputs: &mut Inputs) -> bool {
        self.workloads.follow(is_wanted);
        let mut is_concerned = false;
        for update in self.workloads.take() {
            is_concerned |= inputs.update(update);
        }
        is_concerned
    }
}

impl Of {
    fn kind(self) -> &'static str {
        match self {
            Self::Kind(kind) => kind.as_str(),
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
        }
    }

    fn removal(self, name: &Name) -> Update {
        let (namespace, name) = (name.namespace().to_owned(), name.name().to_owned());
        match self {
            Self::Kind(kind) => Update::Removed(kind, name),
            Self::Service => Update::ServiceRemoved(namespace, name),
            Self::EndpointSlice => Update::EndpointSliceRemoved(namespace, name),
        }
    }
}

fn shown(name: &Name) -> String {
    match name.namespace() {
        "" => name.name().to_owned(),
        namespace => format!("{namespace}/{}", name.name()),
    }
}
