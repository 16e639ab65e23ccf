//! Which controllers are on.

use std::sync::Arc;

use tokio::sync::Notify;
use tortie_api::crd::Group;
use tortie_client::Client;
use tortie_client::connect::Backend;
use tortie_migrate::{datastore_migration, policy_names};
use tortie_operator::Manager;
use tortie_store::kubernetes::KubernetesStore;

use super::Options;
use crate::mirror::{self, Mirrored, Namespaces, Policies, ServiceAccounts};
use crate::settings::{Mirroring, NodeSettings, Settings};
use crate::{
    compaction, ip_pool, ipam_gc, load_balancer, memory, node, standalone, tier, workload_endpoint,
};

/// Adds the controllers that are on to a manager. `restart` is told when the process has to start anew.
pub(super) fn add(
    manager: &Manager,
    options: &Options,
    settings: &Settings,
    restart: &Arc<Notify>,
) {
    manager.run_always("memory", async {
        memory::give_back().await;
        Ok(())
    });
    let datastore = &options.client;
    // A datastore that holds Kubernetes' objects itself shows them as resources.
    if !options.stands_alone {
        add_mirror::<Policies>(manager, datastore, settings.policy);
        add_mirror::<Namespaces>(manager, datastore, settings.namespace);
        add_mirror::<ServiceAccounts>(manager, datastore, settings.service_account);
    }
    if let Some(mirroring) = settings.workload_endpoint {
        starting("Pod");
        workload_endpoint::add(manager, datastore, mirroring);
    }
    if let Some(settings) = &settings.node {
        add_node(manager, options, settings);
    }
    if let Some(settings) = settings.load_balancer {
        starting("LoadBalancer");
        let store = Arc::clone(options.client.store());
        load_balancer::add(manager, &options.cluster, store, settings.assign_ips);
    }
    if let Backend::Kubernetes(store) = &options.backend {
        if store.group() == Group::V3 {
            starting("IPPool");
            ip_pool::add(manager, Arc::clone(options.client.store()));
            starting("Tier");
            tier::add(manager, Arc::clone(options.client.store()));
        }
        starting("DatastoreMigration");
        add_migration(manager, &options.cluster, store, restart);
    }
    if options.stands_alone {
        starting("Standalone");
        standalone::add(manager, datastore, &options.cluster);
    }
    if settings.policy_name_migrator {
        starting("NetworkPolicyMigrator");
        let (cluster, backend) = (options.cluster.clone(), options.backend.clone());
        let may_wait = options
            .variables
            .get("FV_TEST")
            .is_none_or(|test| test != "true");
        manager.run_as_leader("NetworkPolicyMigrator", move |_| {
            policy_names::run(cluster, backend, may_wait)
        });
    }
    if let (Backend::Etcd(etcd), Some(period)) = (&options.backend, settings.compaction_period) {
        let compaction = compaction::run(etcd.clone(), period);
        manager.run_as_leader("compaction", move |_| async move {
            compaction.await;
            Ok(())
        });
    }
}

fn add_mirror<M: Mirrored>(manager: &Manager, datastore: &Client, mirroring: Option<Mirroring>) {
    if let Some(mirroring) = mirroring {
        starting(M::CONTROLLER);
        mirror::add::<M>(manager, datastore, mirroring);
    }
}

fn add_node(manager: &Manager, options: &Options, settings: &NodeSettings) {
    starting("Node");
    node::add(manager, &options.client, &options.cluster, settings);
    let pods = manager.cache();
    let nodes = manager.cache();
    let collector = manager.registry(|registry| {
        let settings = ipam_gc::Settings {
            leak_grace_period: settings.leak_grace_period,
        };
        let (cluster, store) = (options.cluster.clone(), Arc::clone(options.client.store()));
        ipam_gc::collect(cluster, pods, nodes, store, settings, registry)
    });
    manager.run_as_leader("IPAM", move |_| async move {
        collector.await;
        Ok(())
    });
}

fn add_migration(
    manager: &Manager,
    cluster: &kube::Client,
    store: &KubernetesStore,
    restart: &Arc<Notify>,
) {
    let [v1, v3] = [Group::V1, Group::V3].map(|group| Arc::new(store.in_group(group)) as Arc<_>);
    let settings = datastore_migration::Settings::new(v1, v3, policy_names::namespace_of_agents());
    let migration =
        manager.registry(|registry| datastore_migration::run(cluster.clone(), settings, registry));
    let restart = Arc::clone(restart);
    manager.run_as_leader("DatastoreMigration", move |_| async move {
        migration.await;
        restart.notify_one();
        Ok(())
    });
}

fn starting(controller: &str) {
    tracing::info!(ControllerType = controller, "Starting controller");
}
