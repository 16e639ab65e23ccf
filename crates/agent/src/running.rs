//! The loop: what the datastore says goes through the engine into the kernel.

mod datastore;
mod enforce;

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tortie_backoff::Retries;
use tortie_dataplane::{Dataplane, LocalNetwork};
use tortie_engine::message::Encapsulation;
use tortie_engine::record::Event;
use tortie_engine::{Engine, Message};
use tortie_kernel::monitor::{Monitor, Topics};
use tortie_kernel::poll::wait;
use tortie_rules::{Config as RulesConfig, Dataplane as Kind};
use tortie_sync::Status;

use self::datastore::Datastore;
use crate::agent::{Agent, Error};
use crate::derive::engine_config;
use crate::health::Part;
use crate::host::{choose, drivers, local_network};
use crate::inputs::{self, Syncer};
use crate::last_good::LastGood;
use crate::overlay::Overlay;
use crate::server::Servers;
use crate::status::StatusFiles;
use tortie_config::Config;

/// The loop comes round at least this often.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

/// Why the loop ended.
pub(crate) enum End {
    Stopped,
    /// The engine is to be told everything again, for a recording.
    Record,
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
pub(crate) struct Running {
    config: Config,
    kind: Kind,
    engine_config: tortie_engine::Config,
    rules_config: Arc<RulesConfig>,
    encapsulation: Encapsulation,
    engine: Engine,
    syncer: Syncer,
    dataplane: Dataplane,
    local: LocalNetwork,
    overlay: Overlay,
    monitor: Monitor,
    status: Option<StatusFiles>,
    datastore: Datastore,
    todo: ToDo,
    _servers: Servers,
    /// When the oldest change that is not in force was heard of.
    heard: Option<Instant>,
    /// Updates since memory was last given back.
    updates: usize,
    /// When what failed is tried again.
    retry: Option<Instant>,
    retries: Retries,
    next_check: Option<Instant>,
    last_check: Option<Instant>,
    next_listing: Option<Instant>,
}

impl Running {
    pub(crate) fn start(agent: &Agent, config: Config) -> Result<Self, Error> {
        let kind = choose(&config);
        let hostname = &agent.options.node;
        let engine_config = engine_config(&config, hostname, kind);
        let encapsulation = Encapsulation::default();
        let rules_config = Arc::new(RulesConfig::new(&config, kind, encapsulation)?);
        let drivers = drivers(&config, kind)?;
        let waker = agent.waker.clone();
        let sync_config = inputs::Config {
            wake: Some(Arc::new(move || waker.wake())),
            ..inputs::Config::for_agent(agent.options.cluster.clone())
        };
        let options = &agent.options;
        let syncer = Syncer::start(&options.store, &sync_config, &options.runtime);
        let local = local_network(&config)?;
        let overlay = Overlay::open(&config, &engine_config, options.mtu_file.as_deref())?;
        let folder = options.status_folder.as_ref();
        let folder = folder.or(config.reporting.endpoint_status_folder.as_ref());
        agent
            .recording
            .write(|| Event::Start(engine_config.clone()));
        tracing::info!(node = %hostname, dataplane = ?kind, "Enforcing");
        let dataplane = Dataplane::new(&rules_config, kind, drivers, hostname);
        agent.report.set_dataplane(kind, dataplane.part());
        Ok(Self {
            kind,
            dataplane,
            engine: Engine::new(engine_config.clone()),
            engine_config,
            rules_config,
            encapsulation,
            syncer,
            local,
            overlay,
            monitor: Monitor::open(Topics {
                addresses: true,
                routes: false,
            })?,
            status: folder.map(|folder| StatusFiles::new(folder)),
            datastore: Datastore::default(),
            todo: ToDo {
                rules: false,
                routes: true,
                interfaces: true,
            },
            _servers: Servers::start(agent, &config),
            heard: None,
            updates: 0,
            retry: None,
            retries: Retries::new(enforce::RETRY),
            next_check: None,
            last_check: None,
            next_listing: None,
            config,
        })
    }

    pub(crate) fn run(mut self, agent: &Agent, last_good: &mut LastGood) -> Result<End, Error> {
        loop {
            let descriptors = [self.monitor.as_fd(), agent.waker.as_fd()];
            let descriptors: Vec<_> = descriptors
                .into_iter()
                .chain(self.dataplane.watched())
                .collect();
            let ready = wait(&descriptors, Some(self.sleep()))?;
            let heard = Instant::now();
            agent.health.round();
            if agent.is_stopped() {
                return Ok(End::Stopped);
            }
            if agent.recording.settle() {
                return Ok(End::Record);
            }
            if ready.first() == Some(&true) {
                self.monitor.drain()?;
                self.todo.interfaces = true;
            }
            if ready.get(2) == Some(&true) {
                self.on_foreign_change();
            }
            agent.waker.clear();
            while let Some(batch) = self.syncer.try_recv() {
                self.on_batch(agent, &batch);
                self.heard.get_or_insert(heard);
            }
            if let Some(end) = self.think(agent, last_good)? {
                return Ok(end);
            }
            self.act(agent);
        }
    }

    /// How long nothing needs to be done.
    fn sleep(&self) -> Duration {
        let times = [
            self.retry,
            self.next_check,
            self.next_listing,
            // While routes may not be changed, nobody looks.
            self.overlay.next_look().filter(|at| *at > Instant::now()),
        ];
        let next = times.into_iter().flatten().min();
        let left = next.map(|at| at.saturating_duration_since(Instant::now()));
        left.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
    }

    fn on_batch(&mut self, agent: &Agent, batch: &inputs::Batch) {
        for problem in &batch.problems {
            tracing::warn!(%problem, "An object cannot be used as it is");
            agent.metrics.problems.inc();
        }
        agent.metrics.updates.inc_by(batch.updates.len() as u64);
        self.updates += batch.updates.len();
        for update in &batch.updates {
            let recorded = || Event::Update(Box::new(update.clone()));
            agent.recording.write(recorded);
            self.engine.on_update(update);
        }
        agent.metrics.resync_state.set(match batch.status {
            Status::WaitForDatastore => 1,
            Status::ResyncInProgress => 2,
            Status::InSync => 3,
        });
        agent.report.set_sync(batch.status);
        if let Some(invalid) = &batch.invalid {
            agent.report.set_invalid(invalid);
        }
        self.datastore.set_refusals(&batch.refusals);
        self.datastore.set_unprotected(&batch.unprotected);
        if batch.status == Status::InSync && self.datastore.set_read() {
            agent.recording.write(|| Event::InSync);
            self.engine.on_in_sync();
        }
    }

    /// Lets the engine speak, and looks at what it says about the agent itself.
    fn think(&mut self, agent: &Agent, last_good: &mut LastGood) -> Result<Option<End>, Error> {
        let start = Instant::now();
        agent.recording.write(|| Event::Flush);
        let messages = self.engine.flush();
        if messages.is_empty() {
            return Ok(None);
        }
        agent
            .metrics
            .engine_seconds
            .observe(start.elapsed().as_secs_f64());
        agent.metrics.messages.inc_by(messages.len() as u64);
        let (mut is_reconfigured, mut is_not_ready) = (false, false);
        for message in messages {
            self.overlay.on_message(&message);
            match message {
                Message::ConfigUpdate(update) => {
                    // Alone it also says that the datastore is ready.
                    if !is_not_ready && self.datastore.set_ready() {
                        self.compare_all();
                    }
                    last_good.set_datastore(update);
                    is_reconfigured = true;
                }
                Message::Encapsulation(encapsulation) => {
                    self.encapsulation = encapsulation;
                    is_reconfigured = true;
                }
                Message::DatastoreNotReady => {
                    is_not_ready = true;
                    self.datastore.set_not_ready();
                }
                Message::InSync => {}
                message => {
                    self.todo.routes |= concerns_routes(&message);
                    self.dataplane.on_message(message);
                    self.todo.rules = true;
                }
            }
        }
        if is_reconfigured {
            let refused = last_good.refused().map(ToOwned::to_owned);
            agent.health.set(Part::Configuration, refused);
            agent.tell_without_effect(last_good.without_effect());
            return self.reconfigure(agent, last_good.config());
        }
        Ok(None)
    }

    fn reconfigure(&mut self, agent: &Agent, config: &Config) -> Result<Option<End>, Error> {
        let kind = choose(config);
        let engine_config = engine_config(config, &agent.options.node, kind);
        if kind != self.kind
            || engine_config != self.engine_config
            || needs_restart(&self.config, config)
        {
            return Ok(Some(End::Restart));
        }
        let rules_config = RulesConfig::new(config, kind, self.encapsulation)?;
        if rules_config != *self.rules_config {
            self.rules_config = Arc::new(rules_config);
            self.dataplane.set_config(&self.rules_config);
            self.todo.rules = true;
        }
        self.overlay.configure(config, &engine_config);
        self.config = config.clone();
        Ok(None)
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
        Message::WorkloadEndpointUpdate(..)
            | Message::WorkloadEndpointRemove(_)
            | Message::GlobalBgpConfigUpdate(_)
    )
}
