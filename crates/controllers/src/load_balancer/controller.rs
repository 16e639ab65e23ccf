//! The loop around the plans.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tortie_api::kube_controllers_configuration::AssignIps;
use tortie_backoff::{Backoff, Retries};
use tortie_error::Causes;
use tortie_ipam::{AssignIp, AutoAssign, Ipam, LOAD_BALANCER, ReleaseIp, Use, attribute};
use tortie_operator::{Cache, ObjectKey, Subscription};
use tortie_store::{Kind, Resource, Store, ipam_names};

use super::ledger::{Ledger, ServiceName};
use super::plan::{Assign, Plan, Status, plan};
use super::service::{CachedNamespace, CachedService, Ingress};
use crate::feed::{Feed, Notice, until};

/// How often everything is looked at.
const PERIOD: Duration = Duration::from_mins(5);

/// How long changes are gathered.
const GATHER: Duration = Duration::from_millis(50);

/// Delays after failures.
const RETRY: Backoff = Backoff {
    first: Duration::from_millis(100),
    most: Duration::from_secs(30),
    jitter: 0.1,
};
const UPGRADE_RETRY: Duration = Duration::from_secs(10);

type Failure = Box<dyn std::error::Error + Send + Sync>;

pub(super) struct Controller {
    client: Client,
    services: Cache<CachedService>,
    namespaces: Cache<CachedNamespace>,
    store: Arc<dyn Store>,
    ipam: Ipam,
    assign: AssignIps,
    ledger: Ledger,
    dirty: BTreeSet<ServiceName>,
}

impl Controller {
    pub(super) fn new(
        client: Client,
        services: Cache<CachedService>,
        namespaces: Cache<CachedNamespace>,
        store: Arc<dyn Store>,
        assign: AssignIps,
    ) -> Self {
        Self {
            client,
            services,
            namespaces,
            ipam: Ipam::new(Arc::clone(&store)),
            store,
            assign,
            ledger: Ledger::default(),
            dirty: BTreeSet::new(),
        }
    }

    pub(super) async fn run(mut self) {
        while let Err(error) = self.ipam.upgrade_host(LOAD_BALANCER).await {
            tracing::warn!(
                error = %Causes(&error),
                "Claims of load balancers could not be brought up to date"
            );
            sleep(UPGRADE_RETRY).await;
        }
        let mut feed = Feed::start(&self.store, &[Kind::IpPool, Kind::IpamBlock]);
        self.services.wait_synced().await;
        self.namespaces.wait_synced().await;
        let mut services = self.services.subscribe();
        let mut period = interval(PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut due: Option<Instant> = None;
        let mut retries = Retries::new(RETRY);
        loop {
            tokio::select! {
                told = feed.next() => {
                    let Some(told) = told else { return };
                    self.take(told);
                    while let Some(told) = feed.try_next() {
                        self.take(told);
                    }
                }
                name = changed(&mut services) => {
                    self.dirty.insert(name);
                }
                _ = period.tick() => self.mark_all(),
                () = until(due) => {
                    due = None;
                    if !feed.is_in_sync() {
                        continue;
                    }
                    self.sync().await;
                    if self.dirty.is_empty() {
                        retries.reset();
                    } else {
                        due = Some(Instant::now() + retries.failed());
                    }
                    continue;
                }
            }
            if !self.dirty.is_empty() && due.is_none() {
                due = Some(Instant::now() + GATHER);
            }
        }
    }

    fn take(&mut self, told: Notice) {
        let is_all = match told {
            Notice::Put(resource) => match *resource {
                Resource::IpPool(pool) => self.ledger.set_pool(&pool),
                Resource::IpamBlock(block) => {
                    if let Some(net) = ipam_names::to_net(&block.metadata.name) {
                        self.dirty.extend(self.ledger.set_block(net, *block));
                    }
                    false
                }
                _ => false,
            },
            Notice::Gone(key) if key.kind == Kind::IpPool => self.ledger.remove_pool(&key.name),
            Notice::Gone(key) => {
                if let Some(net) = ipam_names::to_net(&key.name) {
                    self.dirty.extend(self.ledger.remove_block(net));
                }
                false
            }
            // What was put off until now.
            Notice::InSync(_) => true,
            Notice::Behind(_) => false,
        };
        if is_all {
            self.mark_all();
        }
    }

    fn mark_all(&mut self) {
        self.dirty.extend(self.ledger.services());
        let services = self.services.list();
        let managed = services
            .iter()
            .filter(|service| service.is_managed(self.assign));
        self.dirty.extend(managed.map(|service| name_of(service)));
    }

    /// Does what is to be done for services where something changed. Those that fail stay marked.
    async fn sync(&mut self) {
        for name in std::mem::take(&mut self.dirty) {
            if let Err(error) = self.sync_service(&name).await {
                let ServiceName {
                    namespace,
                    name: service,
                } = &name;
                tracing::warn!(%namespace, %service, error = %Causes(&*error), "A service could not be given its addresses; trying again");
                self.dirty.insert(name);
            }
        }
    }

    async fn sync_service(&mut self, name: &ServiceName) -> Result<(), Failure> {
        let key = ObjectKey::new(name.namespace.as_str(), name.name.as_str());
        let service = self.services.get(&key);
        let handle = service.as_ref().map(|service| service.handle());
        let mut handles = self.ledger.of(name);
        let held = handle.as_ref().and_then(|handle| handles.remove(handle));
        let held = held.unwrap_or_default();
        for former in handles.keys() {
            // Of a service that is gone, perhaps with another of its name in its place.
            self.release_handle(former).await?;
        }
        let (Some(service), Some(handle)) = (service, handle) else {
            return Ok(());
        };
        let plan = match plan(&service, &held, &self.ledger.pools, self.assign) {
            Ok(plan) => plan,
            Err(nonsense) => {
                // Trying again would not help; a change of the service or the pools will.
                let ServiceName { namespace, name } = name;
                tracing::warn!(%namespace, service = %name, error = %Causes(&nonsense), "A service asks for what cannot be");
                return Ok(());
            }
        };
        self.carry_out(&service, &handle, held, plan).await
    }

    async fn carry_out(
        &self,
        service: &CachedService,
        handle: &str,
        mut held: BTreeSet<IpAddr>,
        plan: Plan,
    ) -> Result<(), Failure> {
        if !held.is_empty() && plan.release == held {
            self.release_handle(handle).await?;
        } else if !plan.release.is_empty() {
            let requests = plan.release.iter().map(|address| ReleaseIp {
                handle: Some(handle.to_owned()),
                ..ReleaseIp::from(*address)
            });
            self.ipam.release(&requests.collect::<Vec<_>>()).await?;
        }
        held.retain(|address| !plan.release.contains(address));
        // What was assigned is told even if something else failed.
        let assigned = self.assign(service, handle, plan.assign, &mut held).await;
        let ingress = &service.status.load_balancer.ingress;
        let wanted: Vec<Ingress> = match plan.status {
            Status::AsItIs => return assigned,
            Status::Ours => held.iter().map(entry).collect(),
            Status::WithoutReleased => {
                let is_ours = |entry: &&Ingress| {
                    let address = entry.ip.parse::<IpAddr>();
                    address.is_ok_and(|address| plan.release.contains(&address))
                };
                ingress
                    .iter()
                    .filter(|entry| !is_ours(entry))
                    .cloned()
                    .collect()
            }
        };
        if !is_same(ingress, &wanted) {
            self.write_status(service, &wanted).await?;
        }
        assigned
    }

    async fn assign(
        &self,
        service: &CachedService,
        handle: &str,
        assign: Assign,
        held: &mut BTreeSet<IpAddr>,
    ) -> Result<(), Failure> {
        let name = name_of(service);
        let attributes = BTreeMap::from([
            (attribute::SERVICE.to_owned(), name.name.clone()),
            (attribute::NAMESPACE.to_owned(), name.namespace.clone()),
            (attribute::TYPE.to_owned(), service.spec.r#type.clone()),
            (
                attribute::TIMESTAMP.to_owned(),
                jiff::Timestamp::now().to_string(),
            ),
        ]);
        match assign {
            Assign::Nothing => {}
            Assign::These(addresses) => {
                for address in addresses {
                    let request = AssignIp {
                        handle: Some(handle.to_owned()),
                        attributes: attributes.clone(),
                        used_for: Some(Use::LoadBalancer),
                        max_per_handle: Some(1),
                        ..AssignIp::on(LOAD_BALANCER, address)
                    };
                    self.ipam.assign_ip(&request).await?;
                    held.insert(address);
                }
            }
            Assign::Any {
                v4,
                v6,
                pools4,
                pools6,
            } => {
                let namespace = ObjectKey::cluster(name.namespace.as_str());
                let Some(namespace) = self.namespaces.get(&namespace) else {
                    return Err(format!("there is no namespace {}", name.namespace).into());
                };
                let labels = namespace.metadata.labels.iter();
                let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
                let request = AutoAssign {
                    num4: u32::from(v4),
                    num6: u32::from(v6),
                    handle: Some(handle.to_owned()),
                    attributes,
                    used_for: Use::LoadBalancer,
                    namespace_labels: Some(labels.collect()),
                    pools4,
                    pools6,
                    max_per_handle: Some(1),
                    ..AutoAssign::on(LOAD_BALANCER)
                };
                let (assigned, error) = match self.ipam.auto_assign(&request).await {
                    Ok(assigned) => (Some(assigned), None),
                    Err(error) => (error.assigned().cloned(), Some(error)),
                };
                let assigned = assigned.unwrap_or_default();
                let both = [&assigned.v4, &assigned.v6];
                for address in both.into_iter().flat_map(|given| &given.addresses) {
                    held.insert(address.addr());
                }
                if let Some(error) = error {
                    return Err(error.into());
                }
                for given in both {
                    if let Some(shortfall) = &given.shortfall {
                        return Err(shortfall.to_string().into());
                    }
                }
            }
        }
        Ok(())
    }

    async fn release_handle(&self, handle: &str) -> Result<(), Failure> {
        match self.ipam.release_by_handle(handle).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn write_status(
        &self,
        service: &CachedService,
        ingress: &[Ingress],
    ) -> Result<(), Failure> {
        let ServiceName { namespace, name } = name_of(service);
        let api: Api<k8s_openapi::api::core::v1::Service> =
            Api::namespaced(self.client.clone(), &namespace);
        let mut patch = json!({ "status": { "loadBalancer": { "ingress": ingress } } });
        // Not to a later service of the same name.
        if let Some(uid) = &service.metadata.uid {
            patch["metadata"] = json!({ "uid": uid });
        }
        let parameters = PatchParams::default();
        match api
            .patch_status(&name, &parameters, &Patch::Merge(&patch))
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn name_of(service: &CachedService) -> ServiceName {
    ServiceName {
        namespace: service.metadata.namespace.clone().unwrap_or_default(),
        name: service.metadata.name.clone().unwrap_or_default(),
    }
}

fn entry(address: &IpAddr) -> Ingress {
    Ingress {
        ip: address.to_string(),
        ..Ingress::default()
    }
}

/// Whether both have the same addresses, in any order. What else newer API servers add to them does not count.
fn is_same(found: &[Ingress], wanted: &[Ingress]) -> bool {
    let ips = |list: &[Ingress]| -> BTreeSet<String> {
        list.iter().map(|entry| entry.ip.clone()).collect()
    };
    found.len() == wanted.len() && ips(found) == ips(wanted)
}

async fn changed(services: &mut Subscription<CachedService>) -> ServiceName {
    match services.next().await {
        Some(event) => ServiceName {
            namespace: event
                .key
                .namespace
                .as_deref()
                .unwrap_or_default()
                .to_owned(),
            name: event.key.name.to_string(),
        },
        None => std::future::pending().await,
    }
}
