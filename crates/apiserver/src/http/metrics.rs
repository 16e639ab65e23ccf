//! Figures about requests, under the names that Kubernetes has for them.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::registry::ResourceType;

/// Figures about requests.
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<Labels, Histogram, Buckets>,
    watches: Family<Labels, Gauge>,
    in_flight: Family<InFlightLabels, Gauge>,
    flow_control: FlowControl,
}

/// Figures about what requests hold and wait for.
#[derive(Clone)]
pub(super) struct FlowControl {
    /// How many bytes they may hold.
    pub(super) limit: Gauge,
    /// How many they hold.
    pub(super) held: Gauge,
    /// How many requests wait for their turn.
    pub(super) waiting: Gauge,
    /// How many were told to come back.
    pub(super) rejected: Counter,
    /// How long they waited.
    pub(super) waited: Histogram,
}

impl Default for FlowControl {
    fn default() -> Self {
        Self {
            limit: Gauge::default(),
            held: Gauge::default(),
            waiting: Gauge::default(),
            rejected: Counter::default(),
            waited: Buckets.new_metric(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InFlightLabels {
    request_kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: String,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    verb: String,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
}

#[derive(Clone)]
struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        // From half a millisecond to half a minute.
        Histogram::new(exponential_buckets(0.0005, 2.0, 17))
    }
}

/// What a request is counted as. There are only so many of these, whatever clients send.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) verb: &'static str,
    pub(super) of: Option<&'a ResourceType>,
}

/// A watch that is open; closed when this is dropped.
pub(super) struct OpenWatch(Gauge);

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::default();
        let requests = Family::default();
        let durations = Family::new_with_constructor(Buckets);
        let watches = Family::default();
        registry.register(
            "apiserver_request",
            "Requests, by what they asked for and how they were answered",
            requests.clone(),
        );
        registry.register(
            "apiserver_request_duration_seconds",
            "How long requests other than watches took",
            durations.clone(),
        );
        registry.register(
            "apiserver_longrunning_requests",
            "Watches that are open",
            watches.clone(),
        );
        let in_flight = Family::default();
        registry.register(
            "apiserver_current_inflight_requests",
            "Requests that are being carried out",
            in_flight.clone(),
        );
        let flow_control = FlowControl::default();
        flow_control.register(&mut registry);
        Self {
            registry,
            requests,
            durations,
            watches,
            in_flight,
            flow_control,
        }
    }

    /// The count of requests of a sort that are being carried out, under Kubernetes' name for the sort.
    pub(super) fn in_flight(&self, request_kind: &'static str) -> Gauge {
        let labels = InFlightLabels { request_kind };
        self.in_flight.get_or_create(&labels).clone()
    }

    pub(super) fn flow_control(&self) -> FlowControl {
        self.flow_control.clone()
    }

    pub(super) fn count(&self, subject: Subject<'_>, code: u16, took: Duration) {
        let Labels {
            verb,
            group,
            version,
            resource,
        } = subject.labels();
        let labels = RequestLabels {
            verb,
            group,
            version,
            resource,
            code,
        };
        self.requests.get_or_create(&labels).inc();
        if subject.verb != "WATCH" {
            let durations = self.durations.get_or_create(&subject.labels()).clone();
            durations.observe(took.as_secs_f64());
        }
    }

    pub(super) fn open_watch(&self, of: &ResourceType) -> OpenWatch {
        let subject = Subject {
            verb: "WATCH",
            of: Some(of),
        };
        let watches = self.watches.get_or_create(&subject.labels()).clone();
        watches.inc();
        OpenWatch(watches)
    }

    /// All figures in the text form that Prometheus reads.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl FlowControl {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "apiserver_flowcontrol_memory_limit_bytes",
            "How many bytes requests may hold at a time",
            self.limit.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_memory_held_bytes",
            "How many bytes requests hold, by what they were expected to",
            self.held.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_current_inqueue_requests",
            "Requests that wait for memory",
            self.waiting.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_rejected_requests",
            "Requests that waited for memory in vain",
            self.rejected.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_request_wait_duration_seconds",
            "How long requests waited for memory",
            self.waited.clone(),
        );
    }
}

impl Subject<'_> {
    fn labels(self) -> Labels {
        Labels {
            verb: self.verb.to_owned(),
            group: self.of.map_or("", |of| of.group),
            version: self.of.map_or("", |of| of.version),
            resource: self.of.map_or("", |of| of.plural),
        }
    }
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_names_of_kubernetes() {
        let registry = crate::registry::Registry::standalone();
        let of = registry.find("projectcalico.org", "v3", "tiers");
        let metrics = Metrics::new();
        let open = metrics.open_watch(of.unwrap());
        let subject = Subject { verb: "GET", of };
        metrics.count(subject, 200, Duration::from_millis(3));
        let labels = r#"verb="GET",group="projectcalico.org",version="v3",resource="tiers""#;
        let text = metrics.text();
        assert!(
            text.contains(&format!(
                "apiserver_request_total{{{labels},code=\"200\"}} 1"
            )),
            "{text}"
        );
        assert!(
            text.contains(&format!(
                "apiserver_request_duration_seconds_count{{{labels}}} 1"
            )),
            "{text}"
        );
        assert!(text.contains("resource=\"tiers\"} 1\n"), "{text}");
        drop(open);
        let watches = r#"apiserver_longrunning_requests{verb="WATCH",group="projectcalico.org",version="v3",resource="tiers"} 0"#;
        assert!(metrics.text().contains(watches));
    }
}
