//! The Kubernetes driver on a real kube-apiserver: the contract in both API groups, and how objects of Kubernetes
//! appear as resources.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cluster;
mod connection;
mod proxy;
mod stored;
mod views;
mod watches;

use tortie_api::crd::Group;
use tortie_store::Kind;
use tortie_store_contract::Subject;

use crate::kubernetes::cluster::{create_namespaces, store};

/// Kinds that are views of Kubernetes' own objects.
const READ_ONLY: &[Kind] = &[
    Kind::LiveMigration,
    Kind::Node,
    Kind::Profile,
    Kind::WorkloadEndpoint,
];

/// Affinities get labels from the driver.
const LABELLED: &[Kind] = &[Kind::BlockAffinity];

mod contract_v3 {
    async fn setup(case: &str) -> (super::Subject, ()) {
        (super::subject(case, super::Group::V3).await, ())
    }

    tortie_store_contract::store_contract!(setup);
}

mod contract_v1 {
    async fn setup(case: &str) -> (super::Subject, ()) {
        (super::subject(case, super::Group::V1).await, ())
    }

    tortie_store_contract::store_contract!(setup);
}

async fn subject(case: &str, group: Group) -> Subject {
    let case = format!("{}-{case}", group.version());
    let subject = Subject {
        read_only: READ_ONLY,
        bare: LABELLED,
        ..Subject::new(store(group).await, &case)
    };
    create_namespaces(&subject.namespaces());
    subject
}
