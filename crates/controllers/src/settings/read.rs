//! Reads the values of variables.

use std::collections::BTreeMap;
use std::time::Duration;

use tortie_api::scalar::{GoDuration, go_bool};
use tortie_variables as variables;

use super::{LogLevel, Refused};

/// The variables that override the resource.
pub(super) const OVERRIDES: [&str; 7] = [
    LOG_LEVEL,
    RECONCILER_PERIOD,
    ENABLED_CONTROLLERS,
    COMPACTION_PERIOD,
    HEALTH_ENABLED,
    SYNC_NODE_LABELS,
    AUTO_HOST_ENDPOINTS,
];

pub(super) const LOG_LEVEL: &str = variables::LOG_LEVEL;
pub(super) const RECONCILER_PERIOD: &str = variables::RECONCILER_PERIOD;
pub(super) const ENABLED_CONTROLLERS: &str = variables::ENABLED_CONTROLLERS;
pub(super) const COMPACTION_PERIOD: &str = variables::COMPACTION_PERIOD;
pub(super) const HEALTH_ENABLED: &str = variables::HEALTH_ENABLED;
pub(super) const SYNC_NODE_LABELS: &str = variables::SYNC_NODE_LABELS;
pub(super) const AUTO_HOST_ENDPOINTS: &str = variables::AUTO_HOST_ENDPOINTS;

/// The controllers that a variable can name, and the sections of the resource that they stand for.
const CONTROLLERS: [(&str, Controller); 7] = [
    ("workloadendpoint", Controller::WorkloadEndpoint),
    ("profile", Controller::Namespace),
    ("namespace", Controller::Namespace),
    ("policy", Controller::Policy),
    ("node", Controller::Node),
    ("serviceaccount", Controller::ServiceAccount),
    ("loadbalancer", Controller::LoadBalancer),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Controller {
    WorkloadEndpoint,
    Namespace,
    Policy,
    Node,
    ServiceAccount,
    LoadBalancer,
}

/// The variables, with what is wrong with them.
pub(super) struct Variables<'a> {
    values: &'a BTreeMap<String, String>,
    pub(super) refused: Vec<Refused>,
}

impl<'a> Variables<'a> {
    pub(super) fn new(values: &'a BTreeMap<String, String>) -> Self {
        Self {
            values,
            refused: Vec::new(),
        }
    }

    /// The variables that are set, of those that override the resource.
    pub(super) fn overrides(&self) -> BTreeMap<String, String> {
        let set = OVERRIDES.into_iter().filter_map(|name| {
            let value = self.values.get(name)?;
            Some((name.to_owned(), value.clone()))
        });
        set.collect()
    }

    /// The value of a variable; nothing if it is not set, or cannot be used, which is noted.
    fn read<T>(
        &mut self,
        name: &'static str,
        rule: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let value = self.values.get(name)?;
        let read = read(value.trim());
        if read.is_none() {
            self.refuse(name, rule);
        }
        read
    }

    fn refuse(&mut self, variable: &'static str, rule: &str) {
        if self.refused.iter().any(|known| known.variable == variable) {
            return;
        }
        let value = self.values.get(variable).cloned().unwrap_or_default();
        self.refused.push(Refused {
            variable,
            value,
            rule: rule.to_owned(),
        });
    }

    pub(super) fn log_level(&mut self) -> Option<LogLevel> {
        let rule = "must be panic, fatal, error, warning, info, debug or trace";
        self.read(LOG_LEVEL, rule, log_level)
    }

    pub(super) fn duration(&mut self, name: &'static str) -> Option<Duration> {
        let rule = "must be a duration such as 30s, 5m or 1h30m; 0 turns it off";
        self.read(name, rule, |text| {
            duration(text.parse::<GoDuration>().ok()?)
        })
    }

    pub(super) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        self.read(name, "must be true or false", go_bool)
    }

    pub(super) fn switch(&mut self, name: &'static str) -> Option<bool> {
        self.read(name, "must be enabled or disabled", |text| {
            match text.to_ascii_lowercase().as_str() {
                "enabled" => Some(true),
                "disabled" => Some(false),
                _ => None,
            }
        })
    }

    pub(super) fn count(&mut self, name: &'static str) -> Option<usize> {
        self.read(name, "must be a number from 1 on", |text| {
            text.parse().ok().filter(|count| *count > 0)
        })
    }

    pub(super) fn controllers(&mut self) -> Option<Vec<Controller>> {
        let value = self.values.get(ENABLED_CONTROLLERS)?;
        let mut named: Vec<Controller> = Vec::new();
        let mut wrong = Vec::new();
        for name in value
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            match CONTROLLERS.iter().find(|(known, _)| *known == name) {
                Some((_, controller)) => named.push(*controller),
                None => wrong.push(name.to_owned()),
            }
        }
        if named.is_empty() && wrong == ["flannelmigration"] {
            let rule = "flannelmigration is a process of its own, and not one of these controllers";
            self.refuse(ENABLED_CONTROLLERS, rule);
        } else if wrong.iter().any(|name| name == "flannelmigration") {
            self.refuse(
                ENABLED_CONTROLLERS,
                "flannelmigration must be the only controller",
            );
        } else if !wrong.is_empty() || named.is_empty() {
            let unknown = match wrong.as_slice() {
                [] => "it names no controller".to_owned(),
                _ => format!("there is no controller {}", wrong.join(", ")),
            };
            let known: Vec<&str> = CONTROLLERS.iter().map(|(name, _)| *name).collect();
            let known = known.join(", ");
            self.refuse(
                ENABLED_CONTROLLERS,
                &format!("{unknown}; there are {known}, and flannelmigration alone"),
            );
        }
        named.sort_unstable();
        named.dedup();
        Some(named)
    }
}

pub(super) fn log_level(text: &str) -> Option<LogLevel> {
    Some(match text.to_ascii_lowercase().as_str() {
        "none" => LogLevel::None,
        "panic" => LogLevel::Panic,
        "fatal" => LogLevel::Fatal,
        "error" => LogLevel::Error,
        "warn" | "warning" => LogLevel::Warning,
        "info" => LogLevel::Info,
        "debug" => LogLevel::Debug,
        "trace" => LogLevel::Trace,
        _ => return None,
    })
}

/// Nothing for a duration below zero.
pub(super) fn duration(given: GoDuration) -> Option<Duration> {
    u64::try_from(given.as_nanos())
        .ok()
        .map(Duration::from_nanos)
}
