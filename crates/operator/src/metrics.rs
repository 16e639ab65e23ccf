//! Figures for Prometheus, under the names that controller-runtime gives them.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge>;
type Seconds = Gauge<f64, AtomicU64>;
type Histograms = Family<Labels, Histogram, Buckets>;

/// The bounds of a histogram's buckets.
#[derive(Clone, Copy, Debug)]
struct Buckets {
    first: f64,
    factor: f64,
    count: u16,
}

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(self.first, self.factor, self.count))
    }
}

/// All that a manager counts.
#[derive(Debug)]
pub(crate) struct Metrics {
    depth: Gauges,
    adds: Counters,
    queue_duration: Histograms,
    work_duration: Histograms,
    retries: Counters,
    unfinished: Family<Labels, Seconds>,
    longest: Family<Labels, Seconds>,
    reconciles: Counters,
    errors: Counters,
    terminal_errors: Counters,
    panics: Counters,
    time: Histograms,
    workers: Gauges,
    active: Gauges,
    leading: Gauges,
    webhook_requests: Counters,
    webhook_latency: Histograms,
}

impl Metrics {
    /// All at zero, registered.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let queue_seconds = Buckets {
            first: 1e-8,
            factor: 10.0,
            count: 12,
        };
        let reconcile_seconds = Buckets {
            first: 0.005,
            factor: 2.0,
            count: 14,
        };
        let metrics = Self {
            depth: Family::default(),
            adds: Family::default(),
            queue_duration: Family::new_with_constructor(queue_seconds),
            work_duration: Family::new_with_constructor(queue_seconds),
            retries: Family::default(),
            unfinished: Family::default(),
            longest: Family::default(),
            reconciles: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            time: Family::new_with_constructor(reconcile_seconds),
            workers: Family::default(),
            active: Family::default(),
            leading: Family::default(),
            webhook_requests: Family::default(),
            webhook_latency: Family::new_with_constructor(reconcile_seconds),
        };
        let m = &metrics;
        // The encoder adds `_total` to the names of counters.
        registry.register("workqueue_depth", "Keys to be taken", m.depth.clone());
        registry.register("workqueue_adds", "Keys added", m.adds.clone());
        registry.register(
            "workqueue_queue_duration_seconds",
            "How long keys waited to be taken",
            m.queue_duration.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "How long work on a key took",
            m.work_duration.clone(),
        );
        registry.register(
            "workqueue_retries",
            "Keys added again after a failure",
            m.retries.clone(),
        );
        registry.register(
            "workqueue_unfinished_work_seconds",
            "Work under way, all together",
            m.unfinished.clone(),
        );
        registry.register(
            "workqueue_longest_running_processor_seconds",
            "Work under way, the longest",
            m.longest.clone(),
        );
        registry.register(
            "controller_runtime_reconcile",
            "Reconciliations by result",
            m.reconciles.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_errors",
            "Reconciliations that failed",
            m.errors.clone(),
        );
        registry.register(
            "controller_runtime_terminal_reconcile_errors",
            "Failures that are not tried again",
            m.terminal_errors.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_panics",
            "Reconciliations that panicked",
            m.panics.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciliations took",
            m.time.clone(),
        );
        registry.register(
            "controller_runtime_max_concurrent_reconciles",
            "Workers",
            m.workers.clone(),
        );
        registry.register(
            "controller_runtime_active_workers",
            "Workers that have a key",
            m.active.clone(),
        );
        registry.register(
            "leader_election_master_status",
            "1 while this process leads, else 0",
            m.leading.clone(),
        );
        registry.register(
            "controller_runtime_webhook_requests",
            "Admission requests by code",
            m.webhook_requests.clone(),
        );
        registry.register(
            "controller_runtime_webhook_latency_seconds",
            "How long admission requests took",
            m.webhook_latency.clone(),
        );
        metrics
    }

    pub(crate) fn queue(&self, name: &str) -> QueueMetrics {
        let labels = vec![("name", name.to_owned()), ("controller", name.to_owned())];
        QueueMetrics {
            depth: self.depth.get_or_create_owned(&labels),
            adds: self.adds.get_or_create_owned(&labels),
            queue_duration: self.queue_duration.get_or_create_owned(&labels),
            work_duration: self.work_duration.get_or_create_owned(&labels),
            retries: self.retries.get_or_create_owned(&labels),
            unfinished: self.unfinished.get_or_create_owned(&labels),
            longest: self.longest.get_or_create_owned(&labels),
        }
    }

    pub(crate) fn controller(&self, name: &str) -> ControllerMetrics {
        let labels = vec![("controller", name.to_owned())];
        let result = |result: &str| {
            let labels = vec![
                ("controller", name.to_owned()),
                ("result", result.to_owned()),
            ];
            self.reconciles.get_or_create_owned(&labels)
        };
        ControllerMetrics {
            success: result("success"),
            requeue_after: result("requeue_after"),
            error: result("error"),
            errors: self.errors.get_or_create_owned(&labels),
            terminal_errors: self.terminal_errors.get_or_create_owned(&labels),
            panics: self.panics.get_or_create_owned(&labels),
            time: self.time.get_or_create_owned(&labels),
            workers: self.workers.get_or_create_owned(&labels),
            active: self.active.get_or_create_owned(&labels),
        }
    }

    pub(crate) fn leading(&self, lease: &str) -> Gauge {
        self.leading
            .get_or_create_owned(&vec![("name", lease.to_owned())])
    }

    pub(crate) fn webhook(&self, path: &str, code: u16, seconds: f64) {
        let labels = vec![("webhook", path.to_owned()), ("code", code.to_string())];
        self.webhook_requests.get_or_create(&labels).inc();
        let labels = vec![("webhook", path.to_owned())];
        self.webhook_latency.get_or_create(&labels).observe(seconds);
    }
}

/// What one queue counts.
#[derive(Clone, Debug)]
pub(crate) struct QueueMetrics {
    depth: Gauge,
    pub(crate) adds: Counter,
    pub(crate) queue_duration: Histogram,
    pub(crate) work_duration: Histogram,
    pub(crate) retries: Counter,
    pub(crate) unfinished: Seconds,
    pub(crate) longest: Seconds,
}

impl QueueMetrics {
    /// Of a queue without a manager.
    pub(crate) fn detached(name: &str) -> Self {
        Metrics::register(&mut Registry::default()).queue(name)
    }

    pub(crate) fn set_depth(&self, depth: usize) {
        self.depth.set(i64::try_from(depth).unwrap_or(i64::MAX));
    }
}

/// What one controller counts.
#[derive(Clone, Debug)]
pub(crate) struct ControllerMetrics {
    pub(crate) success: Counter,
    pub(crate) requeue_after: Counter,
    pub(crate) error: Counter,
    pub(crate) errors: Counter,
    pub(crate) terminal_errors: Counter,
    pub(crate) panics: Counter,
    pub(crate) time: Histogram,
    pub(crate) workers: Gauge,
    pub(crate) active: Gauge,
}
