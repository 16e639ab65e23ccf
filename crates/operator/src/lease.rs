//! Leader election by a Lease, with the fields that client-go writes.
//!
//! # Invariants
//! - A leader's permission ends a fixed time after it *began* its last renewal that succeeded. Others wait longer, from
//!   when they *saw* that renewal. So nobody leads before the last leader has stopped, whatever the clocks say and
//!   however long a process was stopped.
//! - Times in the Lease are for people. Nothing is concluded from them.
//! - Who waits looks at the Lease once in each retry period, and again when it runs out. So after a leader that stops without
//!   a word, another leads within the lease's duration and one such period.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::PostParams;
use prometheus_client::metrics::gauge::Gauge;
use tortie_error::Causes;

use crate::error::{Error, Result};
use crate::leadership::{Leadership, after, now};
use crate::metrics::Metrics;
use crate::queue::Backoff;

/// How the leader is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// Who this process is. No other process may have the same.
    pub identity: String,
    /// How long others wait after the last renewal that they saw. Whole seconds.
    pub lease: Duration,
    /// How long after it began its last renewal a leader may act.
    pub renew_deadline: Duration,
    /// How often a leader renews, and others look.
    pub retry: Duration,
}

impl LeaderElection {
    /// With client-go's times, 15, 10 and 2 seconds, and an identity of host name and a random part.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: format!("{}_{}", host.trim(), uuid::Uuid::new_v4()),
            lease: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }

    fn check(&self) -> Result<()> {
        let problem = if self.lease.as_secs() == 0 || self.lease.subsec_nanos() != 0 {
            "the lease has to be whole seconds"
        } else if self.renew_deadline >= self.lease {
            "the deadline for renewals has to be shorter than the lease"
        } else if self.retry.is_zero() || self.retry.mul_f64(1.2) >= self.renew_deadline {
            "the deadline for renewals has to be longer than the time between them"
        } else if self.identity.is_empty() {
            "the identity is empty"
        } else {
            return Ok(());
        };
        Err(Error::Settings(format!("leader election: {problem}")))
    }
}

/// Takes, keeps and releases the lease.
pub(crate) struct Elector {
    api: Api<Lease>,
    settings: LeaderElection,
    leading: Gauge,
    /// The Lease as it was last read or written.
    lease: Option<Lease>,
    /// When that version was first seen.
    seen: u64,
    /// Whether it was ever tried to take the lease, with or without an answer.
    has_tried: bool,
}

/// What came of an attempt to take the lease.
enum Attempt {
    Taken(Leadership),
    /// By somebody else, for so long unless it is renewed.
    Held(Duration),
}

impl Elector {
    pub(crate) fn new(
        client: kube::Client,
        settings: LeaderElection,
        metrics: &Metrics,
    ) -> Result<Self> {
        settings.check()?;
        let leading = metrics.leading(&settings.name);
        leading.set(0);
        Ok(Self {
            api: Api::namespaced(client, &settings.namespace),
            settings,
            leading,
            lease: None,
            seen: 0,
            has_tried: false,
        })
    }

    /// Waits until this process leads.
    pub(crate) async fn acquire(&mut self) -> Leadership {
        let (name, identity) = (self.settings.name.clone(), self.settings.identity.clone());
        tracing::info!(lease = name, identity, "Waiting to lead");
        // Attempts of many processes drift apart, but none waits longer than was asked for.
        let pause = Backoff {
            first: self.settings.retry,
            most: self.settings.retry,
            jitter: 0.2,
        };
        loop {
            let mut next = pause.after(0);
            // An answer that takes longer than the permission would be of no use.
            let attempt = tokio::time::timeout(self.settings.renew_deadline, self.attempt()).await;
            match attempt {
                Ok(Ok(Attempt::Taken(leadership))) if leadership.is_held() => {
                    tracing::info!(lease = name, identity, "This process leads");
                    self.leading.set(1);
                    return leadership;
                }
                Ok(Ok(Attempt::Taken(_))) => {}
                Ok(Ok(Attempt::Held(left))) => next = next.min(left),
                Ok(Err(error)) => {
                    tracing::warn!(lease = name, error = %Causes(&error), "Cannot take the lease");
                }
                Err(_) => tracing::warn!(lease = name, "The API server does not answer"),
            }
            tokio::time::sleep(next).await;
        }
    }

    async fn attempt(&mut self) -> kube::Result<Attempt> {
        let found = self.api.get_opt(&self.settings.name).await?;
        let Some(found) = found else {
            let mut lease = Lease {
                metadata: ObjectMeta {
                    name: Some(self.settings.name.clone()),
                    namespace: Some(self.settings.namespace.clone()),
                    ..ObjectMeta::default()
                },
                spec: None,
            };
            self.take_over(&mut lease);
            let began = now();
            self.has_tried = true;
            let made = self.api.create(&PostParams::default(), &lease).await;
            return self.taken(made, began);
        };
        let known = self.lease.as_ref().and_then(version);
        if known != version(&found) {
            self.seen = now();
        }
        let mut lease = found.clone();
        self.lease = Some(found);
        let spec = lease.spec.get_or_insert_default();
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        let seconds = spec.lease_duration_seconds.unwrap_or_default().max(0);
        let promised = Duration::from_secs(u64::from(seconds.unsigned_abs()));
        let left = after(self.seen, promised).saturating_sub(now());
        if !holder.is_empty() && left > 0 {
            return Ok(Attempt::Held(Duration::from_nanos(left)));
        }
        self.take_over(&mut lease);
        let began = now();
        self.has_tried = true;
        let written = self.write(&lease).await;
        self.taken(written, began)
    }

    fn taken(&mut self, written: kube::Result<Lease>, began: u64) -> kube::Result<Attempt> {
        match written {
            Ok(lease) => {
                self.lease = Some(lease);
                let deadline = after(began, self.settings.renew_deadline);
                Ok(Attempt::Taken(Leadership::until(deadline)))
            }
            // Somebody was quicker.
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
                Ok(Attempt::Held(self.settings.lease))
            }
            Err(error) => Err(error),
        }
    }

    /// Renews until leadership is lost.
    pub(crate) async fn keep(&mut self, leadership: &Leadership) {
        let renewals = async {
            loop {
                tokio::time::sleep(self.settings.retry).await;
                if !leadership.is_held() {
                    return;
                }
                let began = now();
                let patience = leadership.remaining().min(self.settings.renew_deadline / 2);
                match tokio::time::timeout(patience, self.renew()).await {
                    Ok(Ok(true)) => {
                        let deadline = after(began, self.settings.renew_deadline);
                        if leadership.extend(deadline).is_err() {
                            return;
                        }
                    }
                    Ok(Ok(false)) => return,
                    Ok(Err(error)) => {
                        tracing::warn!(error = %Causes(&error), "Lease not renewed; will be tried again");
                    }
                    Err(_) => tracing::warn!("Lease not renewed in time; will be tried again"),
                }
            }
        };
        tokio::select! {
            biased;
            () = leadership.lost() => {}
            () = renewals => {}
        }
        leadership.give_up();
        self.leading.set(0);
        tracing::error!(lease = self.settings.name, "Leadership was lost");
    }

    /// Whether the lease is still this process's.
    async fn renew(&mut self) -> kube::Result<bool> {
        let Some(mut lease) = self.lease.clone() else {
            return Ok(false);
        };
        let spec = lease.spec.get_or_insert_default();
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        match self.write(&lease).await {
            Ok(written) => {
                self.lease = Some(written);
                Ok(true)
            }
            // Changed by somebody, which may be this process's own write whose answer was lost.
            Err(kube::Error::Api(status)) if status.is_conflict() => {
                let found = self.api.get(&self.settings.name).await?;
                if !self.is_holder(&found) {
                    return Ok(false);
                }
                self.lease = Some(found);
                Box::pin(self.renew()).await
            }
            // Whoever deleted it, another may have made it anew.
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Lets another process lead at once. Only when nothing that needs leadership runs any more.
    pub(crate) async fn release(&mut self) {
        self.leading.set(0);
        if !self.has_tried {
            return;
        }
        let released = async {
            let found = self.api.get(&self.settings.name).await?;
            if !self.is_holder(&found) {
                return Ok(());
            }
            let mut lease = found;
            let spec = lease.spec.get_or_insert_default();
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            spec.renew_time = Some(MicroTime(Timestamp::now()));
            self.write(&lease).await.map(drop)
        };
        match released.await {
            Ok(()) => tracing::info!(lease = self.settings.name, "The lease is released"),
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "The lease could not be released; it will run out");
            }
        }
    }

    fn take_over(&self, lease: &mut Lease) {
        let spec: &mut LeaseSpec = lease.spec.get_or_insert_default();
        let time = Some(MicroTime(Timestamp::now()));
        // What is counted is how often the holder changed: the first one is no change.
        spec.lease_transitions = match spec.lease_transitions {
            None => Some(0),
            Some(count) => Some(count.saturating_add(1)),
        };
        spec.holder_identity = Some(self.settings.identity.clone());
        let seconds = i32::try_from(self.settings.lease.as_secs()).unwrap_or(i32::MAX);
        spec.lease_duration_seconds = Some(seconds);
        spec.acquire_time.clone_from(&time);
        spec.renew_time = time;
    }

    fn is_holder(&self, lease: &Lease) -> bool {
        let holder = lease
            .spec
            .as_ref()
            .and_then(|spec| spec.holder_identity.as_deref());
        holder == Some(&self.settings.identity)
    }

    /// Writes only over the version that was read.
    async fn write(&self, lease: &Lease) -> kube::Result<Lease> {
        let params = PostParams::default();
        self.api.replace(&self.settings.name, &params, lease).await
    }
}

fn version(lease: &Lease) -> Option<&str> {
    lease.metadata.resource_version.as_deref()
}
