//! `tortie ipam`: who has which address, and what is wrong with that.

mod check;
mod configure;
mod in_use;
mod release;
mod report_file;
mod show;
mod split;
mod why;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use tortie_client::Client;
use tortie_client::connect::Connection;
use tortie_ipam::Ipam;
use tortie_store::{Key, Kind, Resource};

use crate::args::{self, Global, IpamCommand};
use crate::config::open;

/// Address management of a datastore.
struct Addresses {
    client: Client,
    /// The cluster that is the datastore, if one is.
    cluster: Option<kube::Client>,
    ipam: Ipam,
}

pub(super) async fn run(args: args::Ipam, global: &Global) -> Result<ExitCode> {
    let Connection {
        client, cluster, ..
    } = open(global).await?;
    let addresses = Addresses {
        ipam: Ipam::new(Arc::clone(client.store())),
        client,
        cluster,
    };
    match args.command {
        IpamCommand::Show(args) => show::run(&args, &addresses).await,
        IpamCommand::Check(args) => check::run(&args, &addresses).await,
        IpamCommand::Release(args) => release::run(&args, &addresses).await,
        IpamCommand::Configure(args) => configure::run(&args, &addresses).await,
        IpamCommand::Split(args) => split::run(&args, &addresses).await,
        IpamCommand::Why(args) => why::run(&args, &addresses).await,
    }
}

impl Addresses {
    /// What the datastore says of itself.
    async fn cluster_information(&self) -> Result<tortie_api::ClusterInformation> {
        let key = Key::global(Kind::ClusterInformation, "default");
        match self.client.get(&key).await? {
            Resource::ClusterInformation(information) => Ok(*information),
            _ => anyhow::bail!("{key} is something else"),
        }
    }
}

/// Whether nothing may change in the datastore meanwhile.
fn is_locked(information: &tortie_api::ClusterInformation) -> bool {
    information.spec.datastore_ready == Some(false)
}
