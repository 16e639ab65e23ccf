//! Arguments of `apiserver` and `webhooks`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::audit::AuditLog;

const HELP: &str = "\
Serves projectcalico.org/v3 behind the API server of Kubernetes, as Calico's own API server does, so that kubectl shows and
changes Calico's resources wherever they are kept: in etcd or as custom resources of crd.projectcalico.org. Who may do what
is what Kubernetes says; policies are also subject to the rights on their tier. A server without a cluster is `tortie up`.

It registers itself as the APIService v3.projectcalico.org, unless told not to.

Examples:
  tortie apiserver                                             in a pod, with its own certificate
  ETCD_ENDPOINTS=http://etcd:2379 KUBECONFIG=admin.conf tortie apiserver --secure-port 5443
  tortie apiserver --tls-cert-file tls.crt --tls-private-key-file tls.key --tls-ca-file ca.crt --no-register";

/// Arguments of `apiserver`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ApiServer {
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    pub(crate) bind_address: std::net::IpAddr,
    /// Port to listen on.
    #[arg(long, value_name = "PORT", default_value_t = 5443)]
    pub(crate) secure_port: u16,
    /// Certificate chain in PEM; read again when it changes [default: one that is made at each start].
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// Key of the certificate in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// Authority of the certificate in PEM, for the registration.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_ca_file: Option<PathBuf>,
    /// Namespace of the Service that leads here.
    #[arg(long, value_name = "NAME", default_value = "calico-apiserver")]
    pub(crate) service_namespace: String,
    /// Name of the Service that leads here.
    #[arg(long, value_name = "NAME", default_value = "calico-api")]
    pub(crate) service_name: String,
    /// Port of that Service.
    #[arg(long, value_name = "PORT", default_value_t = 443)]
    pub(crate) service_port: u16,
    /// Leave the registration to others.
    #[arg(long)]
    pub(crate) no_register: bool,
    /// Where requests are written down.
    #[command(flatten)]
    pub(crate) audit: AuditLog,
}

const WEBHOOKS_HELP: &str = "\
For clusters that keep Calico's resources as custom resources of projectcalico.org itself: Kubernetes asks at /rbac whether
the author of a policy has rights on its tier, and at /cluster-info whether that resource may be written.

Examples:
  tortie webhooks --tls-cert-file tls.crt --tls-private-key-file tls.key --client-ca-file ca.crt
  tortie webhooks --port 8443 --tls-cert-file tls.crt --tls-private-key-file tls.key --allow-unknown-clients";

/// Arguments of `webhooks`.
#[derive(Debug, Args)]
#[command(after_help = WEBHOOKS_HELP)]
pub(crate) struct Webhooks {
    /// Port to listen on.
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    pub(crate) port: u16,
    /// Certificate chain in PEM; read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert_file: PathBuf,
    /// Key of the certificate in PEM.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_private_key_file: PathBuf,
    /// Authorities whose clients alone are served, in PEM.
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "allow_unknown_clients"
    )]
    pub(crate) client_ca_file: Option<PathBuf>,
    /// Serve everybody who can connect: they can ask which rights any user has on tiers.
    #[arg(long, conflicts_with = "client_ca_file")]
    pub(crate) allow_unknown_clients: bool,
    /// Namespace of Calico's own programs [default: that of the pod, or kube-system].
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

impl ApiServer {
    /// Where to listen.
    pub(crate) fn address(&self) -> SocketAddr {
        (self.bind_address, self.secure_port).into()
    }
}
