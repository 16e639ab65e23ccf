//! The world that questions are about: the engine, and who is who in it.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use tortie_agent::{LocalAgent, NodeStatus, RecordingFile, Settings, asked};
use tortie_api::k8s::{ProfileOwner, default_allow_profile};
use tortie_api::tier::{BUILT_IN, TierSpec};
use tortie_api::{Resource, Tier};
use tortie_config::{self as parameters, from_environment, resolve};
use tortie_convert::{self as convert, Converter, ObjectProblem};
use tortie_engine::input::{Update, WorkloadEndpointKey};
use tortie_engine::record::Event;
use tortie_engine::{Config, Engine, Message, Scope};

use crate::directory::{Directory, Notes};
use crate::kernels::Kernels;
use crate::object::{HostPod, Object, PodObject, bare_namespace, bare_service_account};
use crate::placeholders::Placeholders;
use crate::sources::{Source, Sources};

/// How many of the namespaces and service accounts that were filled in a note names.
const SHOWN: usize = 5;

/// All that is known, ready for questions.
pub struct World {
    /// Says what applies to whom, and decides.
    pub engine: Engine,
    /// Who has which name and address.
    pub directory: Directory,
    /// The parameters of agents that have none of their own.
    config: parameters::Config,
    /// What the agent of this machine says, if it was asked and answered.
    local: Option<NodeStatus>,
    /// What it was started with.
    settings: Option<Settings>,
    /// Where policies are written.
    pub sources: Sources,
}

/// Takes what there is, and makes a world of it.
pub(crate) struct Builder<L = Asked> {
    listener: L,
    converter: Converter,
    notes: Notes,
    /// The endpoints of pods, by `namespace/name`: of a pod that is given twice, the last one counts.
    pods: HashMap<String, WorkloadEndpointKey>,
    profiles: HashSet<String>,
    used_profiles: HashSet<String>,
    placeholders: Placeholders,
    sources: Sources,
    /// The object that is being read.
    current: Option<Source>,
    /// What has no part in policy, with how often it came.
    unrelated: BTreeMap<String, usize>,
    /// Namespaces and service accounts that were filled in.
    filled_in: Vec<String>,
}

/// Who is told what there is.
pub(crate) trait Listener {
    fn hear(&mut self, update: &Update);
}

/// An engine that will be asked questions, and the recording of what it was told.
pub(crate) struct Asked {
    engine: Engine,
    recording: Option<RecordingFile>,
}

impl Listener for Asked {
    fn hear(&mut self, update: &Update) {
        if let Some(recording) = &mut self.recording {
            recording.write(&Event::Update(Box::new(update.clone())));
        }
        self.engine.on_update(update);
    }
}

impl Listener for Vec<Update> {
    fn hear(&mut self, update: &Update) {
        self.push(update.clone());
    }
}

// === impl Builder ===

impl Builder {
    /// A world with nothing but what always exists. What its engine is told is recorded, if that is wanted.
    pub(crate) fn new(mut recording: Option<RecordingFile>) -> Self {
        let config = Config {
            scope: Scope::AllNodes,
            allow_source_spoofing: true,
            ..Config::for_node("")
        };
        if let Some(recording) = &mut recording {
            recording.write(&Event::Start(config.clone()));
        }
        let engine = Engine::new(config);
        let mut builder = Self::empty(Asked { engine, recording });
        builder.built_ins();
        builder
    }

    /// The world; hosts without an address get one if `with_made_up`.
    pub(crate) fn build(self, with_made_up: bool) -> Result<World> {
        let Self {
            listener,
            notes,
            mut placeholders,
            sources: policy_sources,
            ..
        } = self;
        let Asked {
            mut engine,
            recording,
        } = listener;
        engine.on_in_sync();
        let mut sources = parameters::Sources {
            environment: from_environment(std::env::vars_os()),
            ..parameters::Sources::default()
        };
        engine.flush_to(&mut |message| {
            if let Message::ConfigUpdate(update) = message {
                sources.datastore = update;
            }
        });
        if let Some(mut recording) = recording {
            recording.write(&Event::InSync);
            recording.write(&Event::Flush);
            let path = recording.path().to_owned();
            recording
                .finish()
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let directory = notes.close(with_made_up.then_some(&mut placeholders));
        Ok(World {
            engine,
            directory,
            config: resolve(&sources).config,
            local: None,
            settings: None,
            sources: policy_sources,
        })
    }
}

// === impl World ===

impl World {
    /// Asks the agent of this machine, which knows what its kernel refused.
    pub async fn ask_local_agent(&mut self) {
        let answer = asked::ask(&self.config).await;
        self.local = answer.ok().and_then(asked::Answer::status);
        // Others than root and the agent's user are not told.
        let found = LocalAgent::find().ok().flatten();
        self.settings = found.and_then(|agent| agent.settings().ok());
    }

    /// What is known of the kernels of its nodes.
    pub fn kernels(&self) -> Kernels<'_> {
        Kernels::new(&self.engine, &self.config, self.local.clone())
            .with_settings(self.settings.clone())
    }
}

impl<L: Listener> Builder<L> {
    /// A world with nothing in it.
    pub(crate) fn empty(listener: L) -> Self {
        Self {
            listener,
            converter: Converter::new(),
            notes: Notes::default(),
            pods: HashMap::new(),
            profiles: HashSet::new(),
            used_profiles: HashSet::new(),
            placeholders: Placeholders::default(),
            sources: Sources::default(),
            current: None,
            unrelated: BTreeMap::new(),
            filled_in: Vec::new(),
        }
    }

    /// Who was told.
    pub(crate) fn into_listener(self) -> L {
        self.listener
    }

    /// Takes what always exists.
    pub(crate) fn built_ins(&mut self) {
        for (name, order, action) in BUILT_IN {
            let mut tier = Tier {
                spec: TierSpec {
                    order: Some(order),
                    default_action: Some(action),
                },
                ..Tier::default()
            };
            name.clone_into(&mut tier.metadata.name);
            self.resource(&tier.into());
        }
        self.resource(&default_allow_profile().into());
    }

    /// Takes an object of a file.
    pub(crate) fn object_of(&mut self, object: Object, source: Source) -> Vec<ObjectProblem> {
        self.current = Some(source);
        let problems = self.object(object);
        self.current = None;
        problems
    }

    fn object(&mut self, object: Object) -> Vec<ObjectProblem> {
        match object {
            Object::Pod(pod) => return self.pod(*pod),
            Object::HostPod(pod) => self.host_pod(pod),
            Object::Resource(resource) => return self.resource(&resource),
            Object::Service(service) => self.service(&service),
            Object::EndpointSlice(slice) => self.endpoint_slice(&slice),
            Object::Unrelated(what) => *self.unrelated.entry(what).or_default() += 1,
        }
        Vec::new()
    }

    /// Takes a resource; what is wrong with it counts as absent.
    pub(crate) fn resource(&mut self, resource: &Resource) -> Vec<ObjectProblem> {
        let converted = self.converter.set(resource);
        for update in &converted.updates {
            self.update(update);
        }
        converted.problems
    }

    /// Takes an update.
    pub(crate) fn update(&mut self, update: &Update) {
        match update {
            Update::Policy(id, Some(_)) => {
                if let Some(source) = &self.current {
                    self.sources.note(id, source);
                }
            }
            Update::Profile(name, Some(_)) => {
                self.profiles.insert(name.clone());
            }
            Update::WorkloadEndpoint(_, Some(endpoint)) => self.use_profiles(&endpoint.profiles),
            Update::NetworkSet(_, Some(set)) => self.use_profiles(&set.profiles),
            _ => {}
        }
        self.notes.note(update);
        self.listener.hear(update);
    }

    /// Takes a service.
    pub(crate) fn service(&mut self, service: &Service) {
        self.notes.services.service(service);
        self.update(&convert::service(service));
    }

    /// Takes a part of what is behind a service.
    pub(crate) fn endpoint_slice(&mut self, slice: &EndpointSlice) {
        self.notes.services.slice(slice);
        self.update(&convert::endpoint_slice(slice));
    }

    /// Takes a pod in the network of its host.
    pub(crate) fn host_pod(&mut self, pod: HostPod) {
        self.remove_pod(&pod.name);
        self.notes.host_pod(pod.name, &pod.node, &pod.addresses);
    }

    fn pod(&mut self, pod: PodObject) -> Vec<ObjectProblem> {
        let PodObject {
            mut endpoint,
            is_finished,
            host_address,
        } = pod;
        let node = endpoint.spec.node.clone();
        if let Some(address) = host_address {
            self.notes.host_address(&node, address);
        }
        let name = format!("{}/{}", endpoint.metadata.namespace, endpoint.spec.pod);
        if endpoint.spec.ip_networks.is_empty() && !is_finished {
            let [v4, v6] = self.placeholders.addresses();
            endpoint.spec.ip_networks = vec![format!("{v4}/32"), format!("{v6}/128")];
        }
        let converted = self.converter.set(&Resource::from(endpoint));
        for update in &converted.updates {
            if let Update::WorkloadEndpoint(key, _) = update
                && self.pods.get(&name) != Some(key)
            {
                self.remove_pod(&name);
                self.pods.insert(name.clone(), key.clone());
            }
            self.update(update);
        }
        converted.problems
    }

    fn remove_pod(&mut self, name: &str) {
        if let Some(key) = self.pods.remove(name) {
            let gone = Update::WorkloadEndpoint(key.clone(), None);
            self.listener.hear(&gone);
            self.notes.forget_workload(&key);
        }
    }

    fn use_profiles(&mut self, profiles: &[String]) {
        for profile in profiles {
            if !self.used_profiles.contains(profile) {
                self.used_profiles.insert(profile.clone());
            }
        }
    }

    /// Fills in the namespaces and service accounts that are used and not given.
    pub(crate) fn fill_in_profiles(&mut self) {
        let missing = self.used_profiles.difference(&self.profiles);
        let mut missing: Vec<String> = missing.cloned().collect();
        missing.sort();
        for name in missing {
            let (what, profile) = match ProfileOwner::of_profile(&name) {
                Some(ProfileOwner::Namespace { name }) => {
                    (format!("namespace {name}"), bare_namespace(&name))
                }
                Some(ProfileOwner::ServiceAccount { namespace, name }) => (
                    format!("service account {namespace}/{name}"),
                    bare_service_account(&namespace, &name),
                ),
                _ => continue,
            };
            if let Some(profile) = profile {
                self.filled_in.push(what);
                self.resource(&profile);
            }
        }
    }

    /// Fills in what is behind services that have no endpoint slices.
    pub(crate) fn fill_in_slices(&mut self) {
        for slice in self.notes.missing_slices() {
            self.endpoint_slice(&slice);
        }
    }

    /// What comes from files, where much is left out.
    pub(crate) fn expect_files(&mut self) {
        self.notes.keeps_labels = true;
    }

    /// What has no part in policy, in words.
    pub(crate) fn unrelated(&self) -> Option<String> {
        let total: usize = self.unrelated.values().sum();
        let kinds: Vec<String> = self
            .unrelated
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        (total > 0).then(|| {
            format!(
                "{total} objects are left out, because their kinds have no part in policy: {}",
                kinds.join(", ")
            )
        })
    }

    /// What was filled in, in words.
    pub(crate) fn filled_in(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.filled_in.is_empty() {
            let count = self.filled_in.len();
            let shown = self.filled_in.iter().take(SHOWN).cloned();
            let shown: Vec<String> = shown.collect();
            let more = if count > SHOWN { " …" } else { "" };
            lines.push(format!(
                "{count} namespaces and service accounts are used and not given: {}{more}",
                shown.join(", ")
            ));
        }
        if self.placeholders.count() > 0 {
            let count = self.placeholders.count();
            lines.push(format!("{count} pods have made-up addresses"));
        }
        lines
    }
}
