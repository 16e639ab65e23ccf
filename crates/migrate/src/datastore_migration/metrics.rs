//! Figures for Prometheus, under the names that Calico's controllers give them.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::object::Phase;

type Labels = Vec<(&'static str, String)>;

/// The phases, as figures name them.
const PHASES: [(Phase, &str); 6] = [
    (Phase::Pending, "pending"),
    (Phase::Migrating, "migrating"),
    (
        Phase::WaitingForConflictResolution,
        "waiting_for_conflict_resolution",
    ),
    (Phase::Converged, "converged"),
    (Phase::Complete, "complete"),
    (Phase::Failed, "failed"),
];

#[derive(Debug, Clone)]
struct TypeSeconds;

impl MetricConstructor<Histogram> for TypeSeconds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(0.1, 2.0, 12))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Metrics {
    resources: Family<Labels, Counter>,
    errors: Family<Labels, Counter>,
    retries: Family<Labels, Counter>,
    phase: Family<Labels, Gauge>,
    pub(super) seconds: Histogram,
    type_seconds: Family<Labels, Histogram, TypeSeconds>,
}

impl Metrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            resources: Family::default(),
            errors: Family::default(),
            retries: Family::default(),
            phase: Family::default(),
            seconds: Histogram::new(exponential_buckets(1.0, 2.0, 15)),
            type_seconds: Family::new_with_constructor(TypeSeconds),
        };
        // The encoder adds `_total` to the names of counters.
        let Metrics {
            resources,
            errors,
            retries,
            phase,
            seconds,
            type_seconds,
        } = metrics.clone();
        registry.register(
            "calico_migration_resources",
            "Resources by kind and outcome",
            resources,
        );
        registry.register(
            "calico_migration_resource_errors",
            "Failures by kind",
            errors,
        );
        registry.register(
            "calico_migration_retries",
            "Requests that were repeated",
            retries,
        );
        registry.register(
            "calico_migration_phase",
            "1 for the phase, 0 for the others",
            phase,
        );
        registry.register(
            "calico_migration_duration_seconds",
            "How long the migration took",
            seconds,
        );
        registry.register(
            "calico_migration_type_duration_seconds",
            "How long each kind took",
            type_seconds,
        );
        metrics
    }

    pub(super) fn set_phase(&self, phase: Phase) {
        for (known, name) in PHASES {
            let gauge = self
                .phase
                .get_or_create_owned(&vec![("phase", name.to_owned())]);
            gauge.set(i64::from(known == phase));
        }
    }

    pub(super) fn count(&self, kind: &str, outcome: &str, number: usize) {
        let labels = vec![("kind", kind.to_owned()), ("outcome", outcome.to_owned())];
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        self.resources.get_or_create_owned(&labels).inc_by(number);
    }

    pub(super) fn failed(&self, kind: &str) {
        self.errors
            .get_or_create_owned(&vec![("kind", kind.to_owned())])
            .inc();
    }

    pub(super) fn retried(&self, kind: &str, operation: &str) {
        let labels = vec![
            ("kind", kind.to_owned()),
            ("operation", operation.to_owned()),
        ];
        self.retries.get_or_create_owned(&labels).inc();
    }

    pub(super) fn took(&self, kind: &str, seconds: f64) {
        let labels = vec![("kind", kind.to_owned())];
        self.type_seconds
            .get_or_create_owned(&labels)
            .observe(seconds);
    }
}
