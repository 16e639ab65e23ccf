//! `tortie apiserver` and `tortie webhooks`: Calico's resources beside the API server of Kubernetes.

use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use tortie_api::crd::Group;
use tortie_apiserver::aggregated::{CertificateFiles, ServiceReference, Settings};
use tortie_apiserver::{aggregated, webhooks};
use tortie_client::Client;
use tortie_client::connect::{Backend, Connection};
use tortie_operator::own_namespace;

use super::until_signal;
use crate::args::{ApiServer, Global, Webhooks};
use crate::config::{cluster, open};

/// Where Calico's programs are if this process is in no pod.
const USUAL_NAMESPACE: &str = "kube-system";

/// Serves until a signal ends it.
pub(super) async fn run(args: ApiServer, global: &Global) -> Result<ExitCode> {
    let connection = open(global).await?;
    let _served = connection.serve_others();
    let Connection {
        client,
        cluster: kubernetes,
        backend,
        ..
    } = connection;
    let client = match backend {
        // The newer group may be what this very server serves.
        Backend::Kubernetes(store) => Client::new(Arc::new(store.in_group(Group::V1))),
        Backend::Etcd(_) | Backend::Embedded => client,
    };
    let kubernetes = cluster(kubernetes, global).await?;
    let (address, audit) = (args.address(), args.audit.settings());
    let certificate = match (args.tls_cert_file, args.tls_private_key_file) {
        (Some(certificate), Some(key)) => Some(CertificateFiles {
            certificate,
            key,
            authority: args.tls_ca_file,
        }),
        _ => None,
    };
    let settings = Settings {
        address,
        certificate,
        service: ServiceReference {
            namespace: args.service_namespace,
            name: args.service_name,
            port: args.service_port,
        },
        registers: !args.no_register,
        audit,
        ..Settings::default()
    };
    aggregated::run(settings, kubernetes, client, until_signal()?).await?;
    Ok(ExitCode::SUCCESS)
}

/// Answers until a signal ends it.
pub(super) async fn run_webhooks(args: Webhooks, global: &Global) -> Result<ExitCode> {
    if args.allow_unknown_clients {
        tracing::warn!("Everybody who can connect is answered: --allow-unknown-clients");
    }
    let namespace = args.namespace.or_else(own_namespace);
    let settings = webhooks::Settings {
        address: (Ipv4Addr::UNSPECIFIED, args.port).into(),
        certificate: args.tls_cert_file,
        key: args.tls_private_key_file,
        client_authorities: args.client_ca_file,
        namespace: namespace.unwrap_or_else(|| USUAL_NAMESPACE.to_owned()),
    };
    webhooks::run(settings, cluster(None, global).await?, until_signal()?).await?;
    Ok(ExitCode::SUCCESS)
}
