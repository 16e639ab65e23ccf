//! Figures for Prometheus, under the names that Calico's agent gives them.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use tortie_config::WithoutEffect;

/// What the agent counts and measures.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Endpoints on this node.
    pub local_endpoints: Gauge,
    /// Policies that apply on this node.
    pub local_policies: Gauge,
    /// Updates from the datastore.
    pub updates: Counter,
    /// Messages from the engine to the data plane.
    pub messages: Counter,
    /// 1 waiting for the datastore, 2 reading it, 3 in sync.
    pub resync_state: Gauge,
    /// 1 if the datastore says that it is ready, else 0, and nothing in the kernel is touched.
    pub datastore_ready: Gauge,
    /// Times that a change could not be made.
    pub failures: Counter,
    /// Seconds that changes took to be made in the kernel.
    pub apply_seconds: Histogram,
    /// Seconds that the engine took for updates.
    pub engine_seconds: Histogram,
    /// Seconds from hearing of a change to its being in force.
    pub enforced_seconds: Histogram,
    /// Seconds until everything was in force after the start.
    pub initial_seconds: Gauge<f64, AtomicU64>,
    /// IP sets, by IP version.
    pub ip_sets: Family<Vec<(String, String)>, Gauge>,
    /// Objects in the kernel that were not as they should be, and were repaired.
    pub drift: Counter,
    /// Objects of the datastore that could not be used.
    pub problems: Counter,
    /// Objects that are not in the kernel as they were asked for, and deny.
    pub refused: Gauge,
    /// Parameters that are set to something that the agent does not do.
    pub parameters_without_effect: Gauge,
    /// The same, one by one.
    pub parameter_without_effect: Family<Vec<(String, String)>, Gauge>,
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let seconds = || Histogram::new(exponential_buckets(0.000_1, 2.0, 18));
        let metrics = Self {
            local_endpoints: Gauge::default(),
            local_policies: Gauge::default(),
            updates: Counter::default(),
            messages: Counter::default(),
            resync_state: Gauge::default(),
            datastore_ready: Gauge::default(),
            failures: Counter::default(),
            apply_seconds: seconds(),
            engine_seconds: seconds(),
            enforced_seconds: seconds(),
            initial_seconds: Gauge::default(),
            ip_sets: Family::default(),
            drift: Counter::default(),
            problems: Counter::default(),
            refused: Gauge::default(),
            parameters_without_effect: Gauge::default(),
            parameter_without_effect: Family::default(),
            registry: Registry::default(),
        };
        registry.register(
            "felix_active_local_endpoints",
            "Endpoints on this node",
            metrics.local_endpoints.clone(),
        );
        registry.register(
            "felix_active_local_policies",
            "Policies that apply on this node",
            metrics.local_policies.clone(),
        );
        registry.register(
            "felix_calc_graph_updates_processed",
            "Updates from the datastore",
            metrics.updates.clone(),
        );
        registry.register(
            "felix_calc_graph_update_time_seconds",
            "Seconds that the engine took for updates",
            metrics.engine_seconds.clone(),
        );
        registry.register(
            "felix_int_dataplane_messages",
            "Messages from the engine to the data plane",
            metrics.messages.clone(),
        );
        registry.register(
            "felix_int_dataplane_apply_time_seconds",
            "Seconds that changes took to be made in the kernel",
            metrics.apply_seconds.clone(),
        );
        registry.register(
            "felix_int_dataplane_initial_resync_time_seconds",
            "Seconds until everything was in force after the start",
            metrics.initial_seconds.clone(),
        );
        registry.register(
            "felix_int_dataplane_failures",
            "Times that a change could not be made, and was tried again",
            metrics.failures.clone(),
        );
        registry.register(
            "felix_resync_state",
            "1 waiting for the datastore, 2 reading it, 3 in sync",
            metrics.resync_state.clone(),
        );
        registry.register(
            "tortie_datastore_ready",
            "1 if the datastore says that it is ready; 0: nothing in the kernel is touched",
            metrics.datastore_ready.clone(),
        );
        registry.register(
            "felix_ipsets_calico",
            "IP sets in use, by IP version",
            metrics.ip_sets.clone(),
        );
        registry.register(
            "tortie_change_enforced_seconds",
            "Seconds from hearing of a change to its being in force",
            metrics.enforced_seconds.clone(),
        );
        registry.register(
            "tortie_drift_repaired",
            "Objects in the kernel that were not as they should be, and were repaired",
            metrics.drift.clone(),
        );
        registry.register(
            "tortie_invalid_objects",
            "Objects of the datastore that could not be used",
            metrics.problems.clone(),
        );
        registry.register(
            "tortie_refused_objects",
            "Policies, endpoints and sets that the kernel refused or that are too large; what is in their place denies",
            metrics.refused.clone(),
        );
        registry.register(
            "tortie_parameters_without_effect",
            "Parameters that are set to something that the agent does not do",
            metrics.parameters_without_effect.clone(),
        );
        registry.register(
            "tortie_parameter_without_effect",
            "1 for each parameter that is set to something that the agent does not do",
            metrics.parameter_without_effect.clone(),
        );
        Self {
            registry,
            ..metrics
        }
    }

    /// These parameters are set to something that the agent does not do.
    pub(crate) fn set_parameters_without_effect(&self, parameters: &[WithoutEffect]) {
        let count = i64::try_from(parameters.len()).unwrap_or(i64::MAX);
        self.parameters_without_effect.set(count);
        let family = &self.parameter_without_effect;
        family.clear();
        for parameter in parameters {
            let labels = vec![("parameter".to_owned(), parameter.name.to_owned())];
            family.get_or_create(&labels).set(1);
        }
    }

    /// All figures, as Prometheus reads them.
    pub fn text(&self) -> String {
        let mut out = String::new();
        match encode(&mut out, &self.registry) {
            Ok(()) => out,
            Err(_) => String::new(),
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
