//! What the loop does to the kernel: rules, then routes, and looking now and then whether all of it is still there.

use std::fs;
use std::time::{Duration, Instant};

use tortie_backoff::Backoff;
use tortie_dataplane::WorkloadState;
use tortie_error::Causes;
use tortie_files::PUBLIC;
use tortie_kernel::release_unused_memory;
use tortie_rules::Dataplane as Kind;

use super::{Running, ToDo};
use crate::agent::Agent;
use crate::health::Part;
use crate::host::interfaces;

/// How long after a failure the change is tried again.
pub(super) const RETRY: Backoff = Backoff {
    first: Duration::from_millis(100),
    most: Duration::from_secs(10),
    jitter: 0.1,
};

/// How soon after its start an agent looks whether programs that one before it had started, and that ended only after it,
/// changed something meanwhile.
const FIRST_CHECK: Duration = Duration::from_secs(5);

/// The identity of this start of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What others change is looked at at once, but not more often than this.
const CHECK_PAUSE: Duration = Duration::from_secs(1);

/// After so many updates, memory that they needed for a short time is given back.
const MANY_UPDATES: usize = 1000;

impl Running {
    /// Makes in the kernel what has to be made there now.
    pub(super) fn act(&mut self, agent: &Agent) {
        let now = Instant::now();
        if self.next_listing.is_some_and(|at| at <= now) {
            self.todo.interfaces = true;
        }
        if self.todo.interfaces {
            self.list_interfaces();
        }
        if !self.datastore.permits(agent) {
            return;
        }
        if self.next_check.is_some_and(|at| at <= now) {
            self.check(agent);
        }
        self.todo.rules |= self.dataplane.is_retry_due();
        let is_due = self.retry.is_none_or(|at| at <= now);
        if self.todo.rules && is_due {
            self.apply(agent);
        }
        // Routes come after the rules that they lead packets through.
        let is_enforcing = self.next_check.is_some();
        if is_enforcing && !self.config.routes.sync_disabled {
            // Nor is an endpoint said to be up whose rules could not be written.
            if self.todo.routes && !self.todo.rules {
                self.apply_routes();
            }
            let _span = self.span("overlay").entered();
            self.overlay.act();
        }
    }

    /// What log lines of an operation on the kernel have in common.
    fn span(&self, operation: &'static str) -> tracing::Span {
        tracing::error_span!("apply", node = %self.engine_config.node, operation)
    }

    fn list_interfaces(&mut self) {
        let _span = self.span("interfaces").entered();
        match interfaces(&self.config, &mut self.local) {
            Ok(interfaces) => {
                self.dataplane.set_interfaces(interfaces);
                self.todo.interfaces = false;
                self.todo.routes = true;
                self.overlay.distrust_kernel();
                self.todo.rules = true;
            }
            Err(error) => {
                tracing::error!(error = %Causes(&error), "Interfaces could not be listed");
            }
        }
        let interval = self.config.interfaces.refresh_interval;
        self.next_listing = interval.map(|interval| Instant::now() + interval);
    }

    fn apply(&mut self, agent: &Agent) {
        let _span = self.span("rules").entered();
        let start = Instant::now();
        match self.dataplane.apply() {
            Ok(done) => {
                let took = start.elapsed();
                self.todo.rules = false;
                self.retry = None;
                self.retries.reset();
                agent.metrics.apply_seconds.observe(took.as_secs_f64());
                if let Some(heard) = self.heard.take() {
                    let seconds = heard.elapsed().as_secs_f64();
                    agent.metrics.enforced_seconds.observe(seconds);
                }
                tracing::debug!(?done, ?took, "The kernel is up to date");
                agent.health.set(Part::Dataplane, self.refused());
                self.count(agent);
                if self.next_check.is_none() {
                    self.remove_left_overs();
                    if let Err(error) = self.dataplane.watch_others() {
                        tracing::warn!(error = %Causes(&error), "Changes by others cannot be followed");
                    }
                    self.enable_forwarding();
                    ready(agent);
                }
                self.schedule_check();
                if self.updates >= MANY_UPDATES {
                    self.updates = 0;
                    release_unused_memory();
                }
            }
            Err(error) => {
                agent.metrics.failures.inc();
                let error = Causes(&error);
                agent.health.set(Part::Dataplane, Some(error.to_string()));
                let delay = self.retries.failed();
                tracing::error!(%error, retry_in = ?delay, "The kernel could not be changed; trying again");
                self.retry = Some(Instant::now() + delay);
            }
        }
    }

    /// Lets packets pass from one interface to another. Not before rules stand that decide about them.
    fn enable_forwarding(&self) {
        if self.config.ip_forwarding {
            for error in self.local.enable_forwarding() {
                tracing::warn!(error = %Causes(&error), "Forwarding could not be enabled");
            }
        }
    }

    /// Looks at everything in the kernel, as soon as it may be changed.
    pub(super) fn compare_all(&mut self) {
        if self.next_check.is_some() {
            self.next_check = Some(Instant::now());
        }
        self.todo = ToDo {
            rules: true,
            routes: true,
            interfaces: true,
        };
    }

    /// What the kernel refused, in words. It denies, and all else is in force.
    fn refused(&self) -> Option<String> {
        let refused = self.dataplane.refused();
        let first = refused.first()?;
        let others = match refused.len() - 1 {
            0 => String::new(),
            others => format!(" (and {others} more)"),
        };
        Some(format!(
            "{} was refused and denies: {}{others}",
            first.owner, first.reason
        ))
    }

    fn remove_left_overs(&mut self) {
        for error in self.dataplane.remove_left_overs() {
            tracing::warn!(error = %Causes(&error), "Rules of another data plane could not be removed");
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
        let mut interval = interval.unwrap_or(Duration::MAX / 4);
        if self.next_check.is_none() && self.kind == Kind::Iptables {
            interval = interval.min(FIRST_CHECK);
        }
        if self.next_check.is_none_or(|at| at <= Instant::now()) {
            let far = Duration::from_secs(u64::from(u32::MAX));
            self.next_check = Instant::now().checked_add(interval.min(far));
        }
    }

    /// Others changed something in the kernel.
    pub(super) fn on_foreign_change(&mut self) {
        match self.dataplane.is_disturbed() {
            Ok(false) => {}
            Ok(true) => {
                let pause_ends = self.last_check.map(|at| at + CHECK_PAUSE);
                let soon = pause_ends.map_or_else(Instant::now, |at| at.max(Instant::now()));
                self.next_check = self.next_check.map(|at| at.min(soon));
            }
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "Changes by others cannot be followed");
            }
        }
    }

    fn check(&mut self, agent: &Agent) {
        let _span = self.span("check").entered();
        self.last_check = Some(Instant::now());
        match self.dataplane.check() {
            Ok(drift) if drift.is_empty() => {}
            Ok(drift) => {
                for drift in &drift {
                    tracing::warn!(
                        object = drift.object,
                        problem = drift.what,
                        "Somebody else changed the kernel; repairing"
                    );
                }
                agent.metrics.drift.inc_by(drift.len() as u64);
                self.todo.rules = true;
            }
            Err(error) => {
                tracing::error!(error = %Causes(&error), "The kernel could not be read");
                self.todo.rules = true;
            }
        }
        self.todo.routes = true;
        self.overlay.distrust_kernel();
        self.schedule_check();
    }

    fn apply_routes(&mut self) {
        let _span = self.span("routes").entered();
        match self.local.apply(self.dataplane.desired()) {
            Ok(problems) => {
                self.todo.routes = !problems.is_empty();
                for problem in problems {
                    tracing::warn!(%problem, "A route or setting of a workload is missing");
                }
            }
            Err(error) => {
                tracing::error!(error = %Causes(&error), "Routes could not be programmed");
            }
        }
        let Some(status) = &mut self.status else {
            return;
        };
        let desired = self.dataplane.desired();
        let up = desired.workloads().filter(|(_, endpoint)| {
            self.local.state_of(desired, &endpoint.name) == WorkloadState::Up
        });
        if let Err(error) = status.update(up) {
            tracing::warn!(error = %Causes(&error), "The status of endpoints could not be written");
        }
    }

    fn count(&self, agent: &Agent) {
        let desired = self.dataplane.desired();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        agent
            .metrics
            .local_endpoints
            .set(number(desired.endpoint_count()));
        agent
            .metrics
            .local_policies
            .set(number(desired.policy_count()));
        let mut refused = desired.too_large();
        refused.extend(self.dataplane.refused());
        agent.metrics.refused.set(number(refused.len()));
        agent.report.set_refused(refused);
        let (endpoints, policies) = (desired.endpoint_count(), desired.policy_count());
        agent.report.set_applied(endpoints, policies);
        for version in ["4", "6"] {
            let labels = vec![("ip_version".to_owned(), version.to_owned())];
            agent
                .metrics
                .ip_sets
                .get_or_create(&labels)
                .set(number(desired.set_count()));
        }
    }
}

/// Everything is in force for the first time.
fn ready(agent: &Agent) {
    let took = agent.started.elapsed();
    agent.metrics.initial_seconds.set(took.as_secs_f64());
    tracing::info!(?took, "Everything is in force");
    if let Some(file) = &agent.options.ready_file
        && let Err(error) =
            fs::read_to_string(BOOT_ID).and_then(|boot| tortie_files::replace(file, boot, PUBLIC))
    {
        tracing::error!(
            file = %file.display(),
            error = %Causes(&error),
            "The file without which CNI plugins connect no pods could not be written"
        );
    }
    if let Some(call) = &agent.on_ready {
        call();
    }
}
