//! Passwords of sessions, from the secrets that are named and no others: `get`, `list` and `watch` of these are all the rights that
//! this needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use tokio::runtime::Handle;
use tortie_sync::kubernetes::{Endpoint, KubernetesSource, Selection, item};
use tortie_sync::{Followers, Pace, State, Status, Topic};

use crate::Update;
use crate::inputs::{SecretRef, SecretText};

/// Follows secrets by their names.
pub(super) struct Secrets {
    client: kube::Client,
    namespace: String,
    wanted: BTreeSet<SecretRef>,
    /// One for each name.
    followed: BTreeMap<String, Followed>,
    /// What was not told yet.
    news: Vec<Update>,
}

struct Followed {
    followers: Followers<Secret>,
    /// Whether it was read, or is known not to be readable.
    is_known: bool,
    found: Option<Secret>,
}

impl Secrets {
    pub(super) fn new(client: &kube::Client, namespace: &str) -> Self {
        Self {
            client: client.clone(),
            namespace: namespace.to_owned(),
            wanted: BTreeSet::new(),
            followed: BTreeMap::new(),
            news: Vec::new(),
        }
    }

    /// From now on it is about these.
    pub(super) fn follow(&mut self, wanted: BTreeSet<SecretRef>) {
        if wanted == self.wanted {
            return;
        }
        let names: BTreeSet<&String> = wanted.iter().map(|secret| &secret.name).collect();
        self.followed.retain(|name, _| names.contains(name));
        for name in names {
            if !self.followed.contains_key(name) {
                let followed = self.start(name);
                self.followed.insert(name.clone(), followed);
            }
        }
        let gone = self.wanted.difference(&wanted);
        self.news
            .extend(gone.map(|secret| Update::Secret(secret.clone(), None)));
        for secret in wanted.difference(&self.wanted) {
            if let Some(found) = self.followed.get(&secret.name) {
                self.news.push(text(secret, found.found.as_ref()));
            }
        }
        self.wanted = wanted;
    }

    fn start(&self, name: &str) -> Followed {
        let endpoint = Endpoint::new("/api/v1", "secrets", true);
        let source = KubernetesSource::new(self.client.clone(), vec![endpoint], |object| {
            let secret: Secret = serde_json::from_str(object)?;
            Ok(item(&secret.metadata.clone(), secret))
        });
        let source = source.selecting(Selection {
            namespace: self.namespace.clone(),
            name: name.to_owned(),
            ..Selection::default()
        });
        let topic = Topic {
            name: format!("Secret({}/{name})", self.namespace),
            source: Arc::new(source),
            is_optional: true,
        };
        Followed {
            followers: Followers::start(vec![topic], &Pace::default(), None, &Handle::current()),
            is_known: false,
            found: None,
        }
    }

    pub(super) async fn changed(&mut self) {
        if self.followed.is_empty() {
            return std::future::pending().await;
        }
        let waits = self.followed.values_mut();
        let waits = waits.map(|followed| Box::pin(followed.followers.changed()));
        futures::future::select_all(waits).await;
    }

    /// What is new of those that are wanted.
    pub(super) fn take(&mut self) -> Vec<Update> {
        let mut news = std::mem::take(&mut self.news);
        for (name, followed) in &mut self.followed {
            let Some(batch) = followed.followers.try_recv() else {
                continue;
            };
            followed.is_known |= batch.status == Status::InSync;
            for object in batch.objects {
                followed.found = match object.state {
                    State::Present(secret) => Some(secret),
                    State::Unreadable(..) | State::Absent => None,
                };
            }
            let wanted = self.wanted.iter().filter(|secret| secret.name == *name);
            news.extend(wanted.map(|secret| text(secret, followed.found.as_ref())));
        }
        news
    }

    /// Whether of each it is known whether there is one.
    pub(super) fn is_complete(&self) -> bool {
        self.followed.values().all(|followed| followed.is_known)
    }
}

fn text(wanted: &SecretRef, found: Option<&Secret>) -> Update {
    let data = found.and_then(|secret| secret.data.as_ref());
    let bytes = data.and_then(|data| data.get(&wanted.key));
    Update::Secret(wanted.clone(), bytes.map(|bytes| SecretText::new(&bytes.0)))
}
