//! Errors for names that are not there, with what may have been meant.

use std::collections::HashMap;

use anyhow::{Error, anyhow};
use tortie_engine::input::PolicyId;

use crate::directory::Directory;
use crate::spelling::{closest, did_you_mean, nearest};

/// How many namesakes in other namespaces an error lists.
const NAMESAKES: usize = 3;

/// The names of pods, for suggestions.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pods: HashMap<String, Vec<String>>,
    namespaces: HashMap<String, Vec<String>>,
}

impl Directory {
    /// There is no such pod.
    pub(crate) fn no_pod(&self, namespace: &str, pod: &str) -> Error {
        let names = self.suggestible_names();
        let known = |namespace: &str| names.pods.get(namespace).map_or(&[][..], Vec::as_slice);
        let within = |namespace: &str, found: Vec<&str>| -> Vec<String> {
            let full = found.into_iter().map(|pod| format!("{namespace}/{pod}"));
            full.collect()
        };
        let here = nearest(pod, known(namespace).iter().map(String::as_str));
        let mut suggestions = within(namespace, here);
        let namesakes = names.namespaces.get(pod).into_iter().flatten();
        let namesakes = closest(namespace, namesakes.map(String::as_str));
        suggestions.extend(namesakes.iter().map(|other| format!("{other}/{pod}")));
        if known(namespace).is_empty() {
            let near = nearest(namespace, names.pods.keys().map(String::as_str));
            for other in near {
                let found = nearest(pod, known(other).iter().map(String::as_str));
                suggestions.extend(within(other, found));
            }
        }
        if self.hosts.contains_key(pod) {
            suggestions.push(format!("host/{pod}"));
        }
        if suggestions.is_empty() {
            let any = closest(pod, known(namespace).iter().map(String::as_str));
            suggestions.extend(within(namespace, any));
        }
        let mut seen = std::collections::HashSet::new();
        suggestions.retain(|suggestion| seen.insert(suggestion.clone()));
        suggestions.truncate(2 * NAMESAKES);
        let why = if names.pods.is_empty() {
            "; there are no pods at all"
        } else if suggestions.is_empty() && known(namespace).is_empty() {
            "; its namespace has no pods"
        } else {
            ""
        };
        anyhow!(
            "there is no pod `{namespace}/{pod}`{why}{}",
            did_you_mean(&suggestions)
        )
    }

    /// There is no such node and no such host endpoint.
    pub(crate) fn no_host(&self, name: &str) -> Error {
        let hosts = self.hosts.keys().chain(self.host_endpoints.keys());
        let near = nearest(name, hosts.map(String::as_str));
        let near: Vec<String> = near.iter().map(|name| format!("host/{name}")).collect();
        anyhow!(
            "there is no node and no host endpoint `{name}`{}",
            did_you_mean(&near)
        )
    }

    /// What was given is neither a pod nor a host nor an address.
    pub(crate) fn not_a_party(&self, asked: &str) -> Error {
        let names = self.suggestible_names();
        let exact = names.namespaces.get(asked).map_or(&[][..], Vec::as_slice);
        let full = |namespace: &String| format!("{namespace}/{asked}");
        if exact.len() > 1 {
            let found: Vec<String> = exact.iter().take(NAMESAKES).map(full).collect();
            return anyhow!(
                "`{asked}` is ambiguous: {} namespaces have a pod of this name{}",
                exact.len(),
                did_you_mean(&found)
            );
        }
        let mut suggestions: Vec<String> = exact.iter().map(full).collect();
        if self.hosts.contains_key(asked) || self.host_endpoints.contains_key(asked) {
            suggestions.push(format!("host/{asked}"));
        }
        if suggestions.is_empty() {
            let near = nearest(asked, names.namespaces.keys().map(String::as_str));
            for pod in near {
                let namespaces = names.namespaces.get(pod).into_iter().flatten();
                suggestions.extend(namespaces.take(1).map(|other| format!("{other}/{pod}")));
            }
        }
        anyhow!(
            "`{asked}` must be NAMESPACE/POD, host/NAME or an address{}",
            did_you_mean(&suggestions)
        )
    }

    /// There is no such policy.
    pub fn no_policy(&self, asked: &str, id: &PolicyId) -> Error {
        let mut namesakes: Vec<&PolicyId> = self
            .policies
            .iter()
            .filter(|known| known.name == id.name)
            .collect();
        namesakes.sort_unstable();
        let namesakes = namesakes.iter().take(NAMESAKES);
        let mut near: Vec<String> = namesakes.map(ToString::to_string).collect();
        let short = |known: &PolicyId| known.to_string();
        let others: Vec<String> = self.policies.iter().map(short).collect();
        let asked_short = id.to_string();
        for found in nearest(&asked_short, others.iter().map(String::as_str)) {
            if !near.iter().any(|known| known == found) {
                near.push(found.to_owned());
            }
        }
        near.truncate(2 * NAMESAKES);
        anyhow!("there is no policy `{asked}`{}", did_you_mean(&near))
    }

    fn suggestible_names(&self) -> &Names {
        self.names.get_or_init(|| {
            let mut names = Names::default();
            for full in self.by_name.keys().chain(self.host_pods.keys()) {
                let Some((namespace, pod)) = full.split_once('/') else {
                    continue;
                };
                let pods = names.pods.entry(namespace.to_owned()).or_default();
                pods.push(pod.to_owned());
                let namespaces = names.namespaces.entry(pod.to_owned()).or_default();
                namespaces.push(namespace.to_owned());
            }
            names.pods.values_mut().for_each(|pods| pods.sort());
            let namespaces = names.namespaces.values_mut();
            namespaces.for_each(|namespaces| namespaces.sort());
            names
        })
    }
}
