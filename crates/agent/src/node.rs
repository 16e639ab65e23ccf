//! The loop: what the datastore says goes through the engine into the kernel.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tortie_dataplane::{Dataplane, LocalNetwork, WorkloadState, remove_left_overs};
use tortie_engine::message::{ConfigUpdate, Encapsulation};
use tortie_engine::{Engine, Message};
use tortie_kernel::monitor::{Monitor, Topics};
use tortie_kernel::poll::wait;
use tortie_rules::Dataplane as Kind;
use tortie_sync::{Status, Syncer};

use crate::agent::{Agent, Error, usable};
use crate::config::{Config, Sources, resolve};
use crate::derive::{engine_config, rules_config};
use crate::machine::{choose, drivers, interfaces, local_network, versions};
use crate::server::Servers;
use crate::status::StatusFiles;

/// How long after a failure the change is tried again, at first and at most.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(10);

/// The loop comes round at least this often.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

/// Why the loop ended.
pub(crate) enum End {
    Stopped,
    /// The configuration changed in a way that the engine or the data plane must be made anew for.
    Restart,
}

/// What waits to be made in the kernel, or read from it.
#[derive(Debug, Clone, Copy)]
struct ToDo {
    rules: bool,
    routes: bool,
    interfaces: bool,
}

/// All that runs with one configuration.
pub(crate) struct Node {
    config: Config,
    kind: Kind,
    engine_config: tortie_engine::Config,
    rules_config: Arc<tortie_rules::Config>,
    encapsulation: Encapsulation,
    engine: Engine,
    syncer: Syncer,
    dataplane: Dataplane,
    local: LocalNetwork,
    monitor: Monitor,
    status: Option<StatusFiles>,
    is_in_sync: bool,
    is_ready: bool,
    todo: ToDo,
    _servers: Servers,
    /// When the oldest change that is not in force was heard of.
    heard: Option<Instant>,
    retry: Option<(Instant, Duration)>,
    next_check: Option<Instant>,
    next_listing: Option<Instant>,
}

impl Node {
    pub(crate) fn start(agent: &Agent, config: Config) -> Result<Self, Error> {
        let kind = choose(&config);
        let hostname = &agent.options.node;
        let engine_config = engine_config(&config, hostname, kind);
        let encapsulation = Encapsulation::default();
        let rules_config = Arc::new(rules_config(&config, kind, encapsulation)?);
        let drivers = drivers(&config, kind)?;
        let waker = agent.waker.clone();
        let sync_config = tortie_sync::Config {
            wake: Some(Arc::new(move || waker.wake())),
            ..tortie_sync::Config::for_agent(agent.options.cluster.clone())
        };
        let options = &agent.options;
        let syncer = Syncer::start(&options.store, &sync_config, &options.runtime);
        let local = local_network(&config)?;
        if config.ip_forwarding {
            for error in local.enable_forwarding() {
                tracing::warn!("forwarding could not be enabled: {error}");
            }
        }
        let folder = options.status_folder.as_ref();
        let folder = folder.or(config.reporting.endpoint_status_folder.as_ref());
        tracing::info!(node = %hostname, dataplane = ?kind, "enforcing");
        Ok(Self {
            kind,
            dataplane: Dataplane::new(&rules_config, kind, drivers, hostname),
            engine: Engine::new(engine_config.clone()),
            engine_config,
            rules_config,
            encapsulation,
            syncer,
            local,
            monitor: Monitor::open(Topics {
                addresses: true,
                routes: false,
            })?,
            status: folder.map(|folder| StatusFiles::new(folder)),
            is_in_sync: false,
            is_ready: false,
            todo: ToDo {
                rules: false,
                routes: true,
                interfaces: true,
            },
            _servers: Servers::start(agent, &config),
            heard: None,
            retry: None,
            next_check: None,
            next_listing: None,
            config,
        })
    }

    pub(crate) fn run(mut self, agent: &Agent, sources: &mut Sources) -> Result<End, Error> {
        loop {
            let ready = wait(
                &[self.monitor.as_fd(), agent.waker.as_fd()],
                Some(self.sleep()),
            )?;
            let heard = Instant::now();
            agent.health.round();
            if agent.is_stopped() {
                return Ok(End::Stopped);
            }
            if ready.first() == Some(&true) {
                self.monitor.drain()?;
                self.todo.interfaces = true;
            }
            agent.waker.clear();
            while let Some(batch) = self.syncer.try_recv() {
                self.on_batch(agent, &batch);
                self.heard.get_or_insert(heard);
            }
            if let Some(end) = self.think(agent, sources)? {
                return Ok(end);
            }
            self.act(agent);
        }
    }

    /// How long nothing needs to be done.
    fn sleep(&self) -> Duration {
        let times = [
            self.retry.map(|(at, _)| at),
            self.next_check,
            self.next_listing,
        ];
        let next = times.into_iter().flatten().min();
        let left = next.map(|at| at.saturating_duration_since(Instant::now()));
        left.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
    }

    fn on_batch(&mut self, agent: &Agent, batch: &tortie_sync::Batch) {
        for problem in &batch.problems {
            tracing::warn!("{problem}; it counts as absent");
            agent.metrics.problems.inc();
        }
        agent.metrics.updates.inc_by(batch.updates.len() as u64);
        for update in &batch.updates {
            self.engine.on_update(update);
        }
        let is_in_sync = batch.status == Status::InSync;
        agent.metrics.resync_state.set(match batch.status {
            Status::WaitForDatastore => 1,
            Status::ResyncInProgress => 2,
            Status::InSync => 3,
        });
        if is_in_sync && !self.is_in_sync {
            self.is_in_sync = true;
            self.engine.on_in_sync();
        }
        // Once in sync, what is enforced stays right while the datastore is away.
        agent.health.set_in_sync(self.is_in_sync);
    }

    /// Lets the engine speak, and looks at what it says about the agent itself.
    fn think(&mut self, agent: &Agent, sources: &mut Sources) -> Result<Option<End>, Error> {
        let start = Instant::now();
        let messages = self.engine.flush();
        if messages.is_empty() {
            return Ok(None);
        }
        agent
            .metrics
            .engine_seconds
            .observe(start.elapsed().as_secs_f64());
        agent.metrics.messages.inc_by(messages.len() as u64);
        let mut is_reconfigured = false;
        for message in messages {
            match message {
                Message::ConfigUpdate(update) => {
                    set_sources(sources, update);
                    is_reconfigured = true;
                }
                Message::Encapsulation(encapsulation) => {
                    self.encapsulation = encapsulation;
                    is_reconfigured = true;
                }
                Message::DatastoreNotReady => {
                    tracing::warn!("the datastore is not ready; what is enforced stays as it is");
                    self.is_ready = false;
                }
                Message::InSync => self.is_ready = true,
                message => {
                    self.todo.routes |= concerns_routes(&message);
                    self.dataplane.on_message(message);
                    self.todo.rules = true;
                }
            }
        }
        if is_reconfigured {
            return self.reconfigure(agent, sources);
        }
        Ok(None)
    }

    fn reconfigure(&mut self, agent: &Agent, sources: &Sources) -> Result<Option<End>, Error> {
        let config = usable(&resolve(sources))?;
        let kind = choose(&config);
        let engine_config = engine_config(&config, &agent.options.node, kind);
        if kind != self.kind
            || engine_config != self.engine_config
            || needs_restart(&self.config, &config)
        {
            return Ok(Some(End::Restart));
        }
        let rules_config = rules_config(&config, kind, self.encapsulation)?;
        if rules_config != *self.rules_config {
            self.rules_config = Arc::new(rules_config);
            self.dataplane.set_config(&self.rules_config);
            self.todo.rules = true;
        }
        self.config = config;
        Ok(None)
    }

    /// Makes in the kernel what has to be made there now.
    fn act(&mut self, agent: &Agent) {
        let now = Instant::now();
        if self.next_listing.is_some_and(|at| at <= now) {
            self.todo.interfaces = true;
        }
        if self.todo.interfaces {
            self.list_interfaces();
        }
        if !self.is_ready {
            return;
        }
        if self.next_check.is_some_and(|at| at <= now) {
            self.check(agent);
        }
        let is_due = self.retry.is_none_or(|(at, _)| at <= now);
        if self.todo.rules && is_due {
            self.apply(agent);
        }
        if self.todo.routes && self.next_check.is_some() && !self.config.routes.sync_disabled {
            self.apply_routes();
        }
    }

    fn list_interfaces(&mut self) {
        match interfaces(&self.config, &mut self.local) {
            Ok(interfaces) => {
                self.dataplane.set_interfaces(interfaces);
                self.todo.interfaces = false;
                self.todo.routes = true;
                self.todo.rules = true;
            }
            Err(error) => tracing::error!("interfaces could not be listed: {error}"),
        }
        let interval = self.config.interfaces.refresh_interval;
        self.next_listing = interval.map(|interval| Instant::now() + interval);
    }

    fn apply(&mut self, agent: &Agent) {
        let start = Instant::now();
        match self.dataplane.apply() {
            Ok(done) => {
                let took = start.elapsed();
                self.todo.rules = false;
                self.retry = None;
                agent.metrics.apply_seconds.observe(took.as_secs_f64());
                if let Some(heard) = self.heard.take() {
                    let seconds = heard.elapsed().as_secs_f64();
                    agent.metrics.enforced_seconds.observe(seconds);
                }
                tracing::debug!(?done, ?took, "the kernel is up to date");
                agent.health.set_dataplane(None);
                self.count(agent);
                if self.next_check.is_none() {
                    ready(agent);
                    self.remove_left_overs();
                }
                self.schedule_check();
            }
            Err(error) => {
                agent.metrics.failures.inc();
                agent.health.set_dataplane(Some(error.to_string()));
                let delay = self
                    .retry
                    .map_or(FIRST_RETRY, |(_, delay)| (delay * 2).min(LAST_RETRY));
                tracing::error!("{error}; trying again in {delay:?}");
                self.retry = Some((Instant::now() + delay, delay));
            }
        }
    }

    fn remove_left_overs(&self) {
        let versions = versions(&self.config);
        for error in remove_left_overs(self.kind, &versions) {
            tracing::warn!("rules of another data plane could not be removed: {error}");
        }
    }

    fn schedule_check(&mut self) {
        let backend = self.config.tables.backend(self.kind == Kind::Nftables);
        let intervals = [
            backend.refresh_interval,
            self.config.ip_sets.refresh_interval,
            self.config.routes.refresh_interval,
        ];
        // Without an interval there are no more checks, but the first time is over.
        let interval = intervals.into_iter().flatten().min();
        let interval = interval.unwrap_or(Duration::MAX / 4);
        if self.next_check.is_none_or(|at| at <= Instant::now()) {
            let far = Duration::from_secs(u64::from(u32::MAX));
            self.next_check = Instant::now().checked_add(interval.min(far));
        }
    }

    fn check(&mut self, agent: &Agent) {
        match self.dataplane.check() {
            Ok(drift) if drift.is_empty() => {}
            Ok(drift) => {
                for drift in &drift {
                    tracing::warn!("{} {}; repairing", drift.object, drift.what);
                }
                agent.metrics.drift.inc_by(drift.len() as u64);
                self.todo.rules = true;
            }
            Err(error) => {
                tracing::error!("the kernel could not be read: {error}");
                self.todo.rules = true;
            }
        }
        self.todo.routes = true;
        self.schedule_check();
    }

    fn apply_routes(&mut self) {
        match self.local.apply(self.dataplane.world()) {
            Ok(problems) => {
                self.todo.routes = !problems.is_empty();
                for problem in problems {
                    tracing::warn!("{problem}");
                }
            }
            Err(error) => tracing::error!("routes could not be made: {error}"),
        }
        let Some(status) = &mut self.status else {
            return;
        };
        let world = self.dataplane.world();
        let up = world.workloads().filter(|(_, endpoint)| {
            self.local.state_of(world, &endpoint.name) == WorkloadState::Up
        });
        if let Err(error) = status.update(up) {
            tracing::warn!("the status of endpoints could not be written: {error}");
        }
    }

    fn count(&self, agent: &Agent) {
        let world = self.dataplane.world();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        agent
            .metrics
            .local_endpoints
            .set(number(world.endpoint_count()));
        agent
            .metrics
            .local_policies
            .set(number(world.policy_count()));
        for version in ["4", "6"] {
            let labels = vec![("ip_version".to_owned(), version.to_owned())];
            agent
                .metrics
                .ip_sets
                .get_or_create(&labels)
                .set(number(world.set_count()));
        }
    }
}

/// Everything is in force for the first time.
fn ready(agent: &Agent) {
    let took = agent.started.elapsed();
    agent.metrics.initial_seconds.set(took.as_secs_f64());
    tracing::info!(?took, "everything is in force");
    if let Some(call) = &agent.on_ready {
        call();
    }
}

/// Parameters that only a start takes up.
fn needs_restart(old: &Config, new: &Config) -> bool {
    old.ipv6 != new.ipv6
        || old.routes != new.routes
        || old.tables.iptables_backend != new.tables.iptables_backend
        || old.tables.chain_insert_mode != new.tables.chain_insert_mode
        || old.ip_sets.max_size != new.ip_sets.max_size
        || old.reporting != new.reporting
        || old.health != new.health
        || old.metrics != new.metrics
}

fn concerns_routes(message: &Message) -> bool {
    matches!(
        message,
        Message::WorkloadEndpointUpdate(..) | Message::WorkloadEndpointRemove(_)
    )
}

fn set_sources(sources: &mut Sources, update: ConfigUpdate) {
    sources.global = update.global;
    sources.selected = update.selected;
    sources.node = update.node;
}
