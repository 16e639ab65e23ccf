//! How to reach a Kubernetes API server, and as whom.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster,
    NamedContext,
};
use tortie_api::crd::Group;
use tortie_api::names::DEFAULT_VETH_PREFIX;

use crate::error::{Error, Result};

/// Longest time to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The name of what is made up where there is no kubeconfig.
const MADE_UP: &str = "tortie";

/// How to reach a cluster. With nothing set, the account of the pod that this process runs in is used.
///
/// Settings other than the kubeconfig's own override what the kubeconfig says.
#[derive(Clone, PartialEq, Eq)]
pub struct KubernetesConfig {
    /// Kubeconfig files; earlier ones win.
    pub kubeconfig: Vec<PathBuf>,
    /// A kubeconfig as text; it wins over files.
    pub kubeconfig_inline: Option<String>,
    /// The context of the kubeconfig to use, instead of its current one.
    pub context: Option<String>,
    /// Where the API server is, such as `https://10.0.0.1:6443`.
    pub api_endpoint: Option<String>,
    /// Bearer token to show to the API server.
    pub token: Option<String>,
    /// File with the certificates of the authorities that the API server's certificate may be signed by.
    pub ca_file: Option<PathBuf>,
    /// File with the client's certificate.
    pub cert_file: Option<PathBuf>,
    /// File with the key of the client's certificate.
    pub key_file: Option<PathBuf>,
    /// Whether to talk to an API server without checking its certificate. Default `false`.
    pub insecure_skip_tls_verify: bool,
    /// The API group of the CRDs; found out by asking the API server when left out.
    pub api_group: Option<Group>,
    /// Whether addresses come from the pod CIDRs of nodes instead of Calico's address management. Default `false`.
    pub use_pod_cidr: bool,
    /// What names of pod interfaces start with. Default `cali`.
    pub veth_prefix: String,
}

impl Default for KubernetesConfig {
    fn default() -> Self {
        Self {
            kubeconfig: Vec::new(),
            kubeconfig_inline: None,
            context: None,
            api_endpoint: None,
            token: None,
            ca_file: None,
            cert_file: None,
            key_file: None,
            insecure_skip_tls_verify: false,
            api_group: None,
            use_pod_cidr: false,
            veth_prefix: DEFAULT_VETH_PREFIX.to_owned(),
        }
    }
}

/// Leaves out what is secret: the token and the inline kubeconfig.
impl fmt::Debug for KubernetesConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = |secret: &Option<String>| secret.as_ref().map(|_| "(hidden)");
        f.debug_struct("KubernetesConfig")
            .field("kubeconfig", &self.kubeconfig)
            .field("kubeconfig_inline", &hidden(&self.kubeconfig_inline))
            .field("context", &self.context)
            .field("api_endpoint", &self.api_endpoint)
            .field("token", &hidden(&self.token))
            .field("ca_file", &self.ca_file)
            .field("cert_file", &self.cert_file)
            .field("key_file", &self.key_file)
            .field("insecure_skip_tls_verify", &self.insecure_skip_tls_verify)
            .field("api_group", &self.api_group)
            .field("use_pod_cidr", &self.use_pod_cidr)
            .field("veth_prefix", &self.veth_prefix)
            .finish()
    }
}

impl KubernetesConfig {
    /// Reads the value of `CALICO_API_GROUP`: nothing for an empty one.
    pub fn parse_api_group(text: &str) -> Option<Group> {
        match text.trim() {
            "" => None,
            text if text.eq_ignore_ascii_case("projectcalico.org/v3") => Some(Group::V3),
            _ => Some(Group::V1),
        }
    }

    /// The context that is used; nothing where there is no kubeconfig.
    pub fn current_context(&self) -> Result<Option<String>> {
        Ok(self
            .kubeconfig()?
            .and_then(|kubeconfig| kubeconfig.current_context))
    }

    /// Whether both reach the same API server as the same user, who has a certificate.
    pub fn is_same_access_as(&self, other: &Self) -> Result<bool> {
        let access = self.access()?;
        Ok(access.is_some() && access == other.access()?)
    }

    /// The address of the API server, and the certificate of the user.
    fn access(&self) -> Result<Option<(String, String)>> {
        let Some(kubeconfig) = self.kubeconfig()? else {
            return Ok(None);
        };
        let context = kubeconfig
            .contexts
            .into_iter()
            .find(|context| Some(&context.name) == kubeconfig.current_context.as_ref())
            .and_then(|context| context.context)
            .unwrap_or_default();
        let mut clusters = kubeconfig.clusters.into_iter();
        let cluster = clusters.find(|cluster| cluster.name == context.cluster);
        let server = cluster.and_then(|cluster| cluster.cluster?.server);
        let mut users = kubeconfig.auth_infos.into_iter();
        let user = users.find(|user| Some(&user.name) == context.user.as_ref());
        let certificate = user.and_then(|user| user.auth_info?.client_certificate_data);
        Ok(server.zip(certificate))
    }

    /// A client for the API server, for objects that are not resources.
    pub async fn client(&self) -> Result<kube::Client> {
        Ok(self.client_and_address().await?.0)
    }

    /// The same, with the address of the API server for messages.
    pub(super) async fn client_and_address(&self) -> Result<(kube::Client, String)> {
        let mut config = match self.kubeconfig()? {
            Some(kubeconfig) => {
                let options = KubeConfigOptions::default();
                kube::Config::from_custom_kubeconfig(kubeconfig, &options)
                    .await
                    .map_err(|error| Error::other("the settings for Kubernetes cannot be used", error))?
            }
            None => kube::Config::incluster().map_err(|error| {
                let message = "no Kubernetes API server is configured and this is not a pod: set KUBECONFIG or K8S_API_ENDPOINT";
                Error::other(message, error)
            })?,
        };
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        // The caller knows better which of its requests may be repeated.
        config.default_retry = false;
        let address = config.cluster_url.to_string();
        let client = kube::Client::try_from(config)
            .map_err(|error| Error::other("no client for Kubernetes can be made", error))?;
        Ok((client, address.trim_end_matches('/').to_owned()))
    }

    /// The kubeconfig with all settings applied, or nothing where the pod's account is to be used.
    fn kubeconfig(&self) -> Result<Option<Kubeconfig>> {
        let mut kubeconfig = match (self.read_kubeconfig()?, &self.api_endpoint) {
            (Some(kubeconfig), _) => kubeconfig,
            (None, Some(_)) => empty_kubeconfig(),
            (None, None) => return Ok(None),
        };
        if let Some(context) = &self.context {
            kubeconfig.current_context = Some(context.clone());
        }
        let name = kubeconfig.current_context.clone().unwrap_or_default();
        let context = kubeconfig
            .contexts
            .iter()
            .find(|context| context.name == name)
            .and_then(|context| context.context.clone())
            .ok_or_else(|| Error::message(format!("the kubeconfig has no context `{name}`; set K8S_CURRENT_CONTEXT to one that it has")))?;
        if let Some(cluster) = kubeconfig
            .clusters
            .iter_mut()
            .find(|cluster| cluster.name == context.cluster)
        {
            self.override_cluster(cluster.cluster.get_or_insert_default());
        }
        if let Some(user) = kubeconfig
            .auth_infos
            .iter_mut()
            .find(|user| Some(&user.name) == context.user.as_ref())
        {
            self.override_user(user.auth_info.get_or_insert_default());
        }
        Ok(Some(kubeconfig))
    }

    fn read_kubeconfig(&self) -> Result<Option<Kubeconfig>> {
        if let Some(text) = self
            .kubeconfig_inline
            .as_ref()
            .filter(|text| !text.is_empty())
        {
            let parsed = Kubeconfig::from_yaml(text);
            return parsed
                .map(Some)
                .map_err(|error| Error::other("the inline kubeconfig cannot be read", error));
        }
        let mut merged: Option<Kubeconfig> = None;
        for path in &self.kubeconfig {
            // Like kubectl: of several files, some may be missing.
            if self.kubeconfig.len() > 1 && !path.exists() {
                continue;
            }
            let failed = |error| {
                Error::other(
                    format!("kubeconfig `{}` cannot be read", path.display()),
                    error,
                )
            };
            let next = Kubeconfig::read_from(path).map_err(failed)?;
            merged = Some(match merged {
                Some(earlier) => earlier.merge(next).map_err(failed)?,
                None => next,
            });
        }
        Ok(merged)
    }

    fn override_cluster(&self, cluster: &mut Cluster) {
        if let Some(endpoint) = &self.api_endpoint {
            cluster.server = Some(endpoint.clone());
        }
        if let Some(path) = &self.ca_file {
            cluster.certificate_authority = Some(path.to_string_lossy().into_owned());
            cluster.certificate_authority_data = None;
        }
        if self.insecure_skip_tls_verify {
            cluster.insecure_skip_tls_verify = Some(true);
        }
    }

    fn override_user(&self, user: &mut AuthInfo) {
        if let Some(path) = &self.cert_file {
            user.client_certificate = Some(path.to_string_lossy().into_owned());
            user.client_certificate_data = None;
        }
        if let Some(path) = &self.key_file {
            user.client_key = Some(path.to_string_lossy().into_owned());
            user.client_key_data = None;
        }
        if let Some(token) = &self.token {
            user.token = Some(token.clone().into());
            user.token_file = None;
        }
    }
}

/// A kubeconfig with one cluster, one user and one context, all without content.
fn empty_kubeconfig() -> Kubeconfig {
    let context = Context {
        cluster: MADE_UP.into(),
        user: Some(MADE_UP.into()),
        ..Context::default()
    };
    Kubeconfig {
        clusters: vec![NamedCluster {
            name: MADE_UP.into(),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: MADE_UP.into(),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: MADE_UP.into(),
            context: Some(context),
            ..NamedContext::default()
        }],
        current_context: Some(MADE_UP.into()),
        ..Kubeconfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_secrets() {
        let config = KubernetesConfig {
            token: Some("token-text".into()),
            kubeconfig_inline: Some("inline-text".into()),
            ..KubernetesConfig::default()
        };
        let text = format!("{config:?}");
        assert!(
            !text.contains("token-text") && !text.contains("inline-text"),
            "{text}"
        );
    }

    #[test]
    fn any_api_group_but_the_newer_one_means_the_older_one() {
        assert_eq!(KubernetesConfig::parse_api_group(""), None);
        assert_eq!(
            KubernetesConfig::parse_api_group("ProjectCalico.org/V3"),
            Some(Group::V3)
        );
        assert_eq!(
            KubernetesConfig::parse_api_group("crd.projectcalico.org/v1"),
            Some(Group::V1)
        );
    }

    #[test]
    fn settings_override_the_kubeconfig() {
        let inline = r"
            clusters: [{name: c, cluster: {server: 'https://a', certificate-authority-data: eA==}}]
            users: [{name: u, user: {token: old}}]
            contexts: [{name: x, context: {cluster: c, user: u}}]
            current-context: x
        ";
        let config = KubernetesConfig {
            kubeconfig_inline: Some(inline.into()),
            api_endpoint: Some("https://b".into()),
            ca_file: Some("/ca".into()),
            ..KubernetesConfig::default()
        };
        let kubeconfig = config.kubeconfig().unwrap().unwrap();
        let cluster = kubeconfig.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://b"));
        assert_eq!(cluster.certificate_authority.as_deref(), Some("/ca"));
        assert_eq!(cluster.certificate_authority_data, None);
        assert_eq!(cluster.insecure_skip_tls_verify, None);
    }

    #[test]
    fn a_missing_context_is_named() {
        let config = KubernetesConfig {
            api_endpoint: Some("https://b".into()),
            context: Some("nowhere".into()),
            ..KubernetesConfig::default()
        };
        let message = config.kubeconfig().unwrap_err().to_string();
        assert!(message.contains("`nowhere`"), "{message}");
    }
}
