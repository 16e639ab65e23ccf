//! The datastore that a configuration means.
//!
//! What the configuration leaves open comes from the environment, from the variables that all of Calico's programs know,
//! each also with the prefix `CALICO_`, which wins.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tortie_api::crd::Group;
use tortie_store::embedded::DEFAULT_QUOTA;
use tortie_store::etcd::{EtcdConfig, EtcdStore, Pem};
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_store::shared::{self, Shared};
use tortie_store::{Client, Key, Kind, Resource, Store};

use crate::config::NetworkConfig;
use crate::error::{Code, Error, Result};

/// Where the embedded datastore is unless the configuration says otherwise.
const EMBEDDED_FILE: &str = "/var/lib/tortie/tortie.redb";

/// Where a variable's value comes from.
pub type Environment<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// An open datastore.
#[derive(Clone)]
pub struct Datastore {
    /// The datastore.
    pub client: Client,
    /// The cluster, where that is the datastore.
    pub cluster: Option<kube::Client>,
    /// What tells it from others, for processes of this machine.
    place: String,
    /// The cluster, where that is not the datastore and somebody has a way to it already.
    beside: Option<kube::Client>,
}

/// The kinds of datastore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Etcd,
    Kubernetes,
    Embedded,
}

impl Datastore {
    /// A datastore that is not a cluster.
    pub fn of_store(store: Arc<dyn Store>, place: String) -> Self {
        Self {
            client: Client::new(store),
            cluster: None,
            place,
            beside: None,
        }
    }

    /// A datastore that is not a cluster, beside one that knows the pods.
    pub fn beside_cluster(store: Arc<dyn Store>, place: String, cluster: kube::Client) -> Self {
        Self {
            beside: Some(cluster),
            ..Self::of_store(store, place)
        }
    }

    /// What tells it from others, for processes of this machine.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Opens the datastore that a configuration means.
    pub async fn open(config: &NetworkConfig, environment: Environment<'_>) -> Result<Self> {
        match datastore_type(config, environment)? {
            Type::Etcd => {
                // The first thing that is read tells whether etcd can be reached.
                let settings = etcd(config, environment)?;
                let place = settings.endpoints.join(",");
                Ok(Self::of_store(Arc::new(EtcdStore::new(&settings)?), place))
            }
            Type::Embedded => {
                let file = embedded_file(config);
                let opened = Shared::open(file, DEFAULT_QUOTA, shared::PATIENCE).await?;
                let place = file.display().to_string();
                Ok(Self::of_store(opened.into_store(), place))
            }
            Type::Kubernetes => {
                let settings = kubernetes(config, environment);
                let store = KubernetesStore::connect(&settings).await?;
                let cluster = store.client().clone();
                Ok(Self {
                    cluster: Some(cluster),
                    // It is told from others by its settings, without their secrets.
                    ..Self::of_store(Arc::new(store), format!("{settings:?}"))
                })
            }
        }
    }

    /// The cluster, whether or not it is also the datastore.
    pub(crate) async fn cluster(
        &self,
        config: &NetworkConfig,
        environment: Environment<'_>,
    ) -> Result<kube::Client> {
        if let Some(cluster) = self.cluster.as_ref().or(self.beside.as_ref()) {
            return Ok(cluster.clone());
        }
        let settings = KubernetesConfig {
            // Nobody asks this one for resources, so it need not be found out.
            api_group: Some(Group::V3),
            ..kubernetes(config, environment)
        };
        let store = KubernetesStore::connect(&settings).await?;
        Ok(store.client().clone())
    }

    /// Refuses where the datastore is not ready to be used, as during an upgrade.
    pub(crate) async fn check_ready(&self) -> Result<()> {
        let key = Key::global(Kind::ClusterInformation, "default");
        let resource = self.client.store().get(&key).await.map_err(|error| {
            let code = Error::from(error);
            let message = "the datastore has no readable ClusterInformation `default`: it was never initialised, or cannot be reached";
            let class = code.code();
            Error::of(class, message)(code)
        })?;
        match resource {
            Resource::ClusterInformation(information)
                if information.spec.datastore_ready == Some(true) =>
            {
                Ok(())
            }
            _ => Err(Error::new(
                Code::TryLater,
                "Calico is currently not ready to process requests: the ClusterInformation says that the datastore is not ready",
            )),
        }
    }
}

fn datastore_type(config: &NetworkConfig, environment: Environment<'_>) -> Result<Type> {
    let configured = given(&config.datastore_type, environment, "DATASTORE_TYPE");
    let endpoints = given(&config.etcd_endpoints, environment, "ETCD_ENDPOINTS");
    match configured.as_deref().unwrap_or_default() {
        "etcdv3" | "etcd" => Ok(Type::Etcd),
        "embedded" => Ok(Type::Embedded),
        "" if endpoints.is_some() || !config.etcd_authority.is_empty() => Ok(Type::Etcd),
        "" if !config.datastore_path.as_os_str().is_empty() => Ok(Type::Embedded),
        "" | "kubernetes" | "k8s" | "kdd" => Ok(Type::Kubernetes),
        other => Err(Error::config(format!(
            "network configuration: `datastore_type` is `{other}`: expected `etcdv3`, `kubernetes` or `embedded`"
        ))),
    }
}

/// What the configuration says, or else the environment.
fn given(configured: &str, environment: Environment<'_>, name: &str) -> Option<String> {
    let set = |text: String| Some(text).filter(|text| !text.is_empty());
    set(configured.to_owned())
        .or_else(|| environment(&format!("CALICO_{name}")).and_then(set))
        .or_else(|| environment(name).and_then(set))
}

fn etcd(config: &NetworkConfig, environment: Environment<'_>) -> Result<EtcdConfig> {
    let given = |configured: &str, name: &str| given(configured, environment, name);
    if let Some(domain) = given(&config.etcd_discovery_srv, "ETCD_DISCOVERY_SRV") {
        let message = format!(
            "`etcd_discovery_srv` is `{domain}`: finding etcd through DNS is not there; list its members in `etcd_endpoints`"
        );
        return Err(Error::new(Code::UnsupportedField, message));
    }
    let endpoints = given(&config.etcd_endpoints, "ETCD_ENDPOINTS").unwrap_or_else(|| {
        let scheme = match config.etcd_scheme.as_str() {
            "" => "http",
            scheme => scheme,
        };
        format!("{scheme}://{}", config.etcd_authority)
    });
    let pem = |configured: &str, name| given(configured, name).map(|file| Pem::File(file.into()));
    Ok(EtcdConfig {
        endpoints: endpoints.split(',').map(|e| e.trim().to_owned()).collect(),
        username: given("", "ETCD_USERNAME").unwrap_or_default(),
        password: given("", "ETCD_PASSWORD").unwrap_or_default(),
        ca: pem(&config.etcd_ca_cert_file, "ETCD_CA_CERT_FILE"),
        cert: pem(&config.etcd_cert_file, "ETCD_CERT_FILE"),
        key: pem(&config.etcd_key_file, "ETCD_KEY_FILE"),
    })
}

fn kubernetes(config: &NetworkConfig, environment: Environment<'_>) -> KubernetesConfig {
    let given = |configured: &str, name: &str| given(configured, environment, name);
    let file = |configured: &str, name| given(configured, name).map(PathBuf::from);
    let NetworkConfig {
        policy,
        kubernetes: section,
        ..
    } = config;
    // Of old, the whole address of the API's first version was to be given.
    let root = policy
        .k8s_api_root
        .split("/api/")
        .next()
        .unwrap_or_default();
    let root = match section.k8s_api_root.as_str() {
        "" => root,
        root => root,
    };
    let kubeconfig = given(&section.kubeconfig, "KUBECONFIG").unwrap_or_default();
    let group = given(&config.calico_api_group, "CALICO_API_GROUP").unwrap_or_default();
    KubernetesConfig {
        kubeconfig: std::env::split_paths(&kubeconfig)
            .filter(|path| !path.as_os_str().is_empty())
            .collect(),
        context: given("", "K8S_CURRENT_CONTEXT"),
        api_endpoint: given(root, "K8S_API_ENDPOINT"),
        token: given(&policy.k8s_auth_token, "K8S_API_TOKEN"),
        ca_file: file(&policy.k8s_certificate_authority, "K8S_CA_FILE"),
        cert_file: file(&policy.k8s_client_certificate, "K8S_CERT_FILE"),
        key_file: file(&policy.k8s_client_key, "K8S_KEY_FILE"),
        insecure_skip_tls_verify: given("", "K8S_INSECURE_SKIP_TLS_VERIFY")
            .is_some_and(|text| text.eq_ignore_ascii_case("true")),
        api_group: KubernetesConfig::parse_api_group(&group),
        veth_prefix: veth_prefix(environment),
        ..KubernetesConfig::default()
    }
}

/// What names of the interfaces of pods start with.
pub(crate) fn veth_prefix(environment: Environment<'_>) -> String {
    let prefixes = environment("FELIX_INTERFACEPREFIX").unwrap_or_default();
    match prefixes.split(',').next().map(str::trim) {
        None | Some("") => tortie_api::names::DEFAULT_VETH_PREFIX.to_owned(),
        Some(prefix) => prefix.to_owned(),
    }
}

/// The file of the embedded datastore.
fn embedded_file(config: &NetworkConfig) -> &Path {
    if config.datastore_path.as_os_str().is_empty() {
        Path::new(EMBEDDED_FILE)
    } else {
        &config.datastore_path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> NetworkConfig {
        NetworkConfig::parse(text.as_bytes()).expect("a configuration")
    }

    #[track_caller]
    fn check(text: &str, variables: &[(&str, &str)], expected: Type) {
        let environment = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let found = datastore_type(&config(text), &environment).expect("a datastore");
        assert_eq!(found, expected, "{text} {variables:?}");
    }

    #[test]
    fn the_configuration_decides_before_the_environment() {
        check(r#"{"name": "n"}"#, &[], Type::Kubernetes);
        let endpoints = [("ETCD_ENDPOINTS", "http://e:1")];
        check(r#"{"name": "n"}"#, &endpoints, Type::Etcd);
        let text = r#"{"name": "n", "datastore_type": "kubernetes"}"#;
        check(text, &endpoints, Type::Kubernetes);
        let text = r#"{"name": "n", "etcd_authority": "e:1"}"#;
        check(text, &[], Type::Etcd);
        let text = r#"{"name": "n", "datastore_path": "/x"}"#;
        check(text, &[], Type::Embedded);
        let both = [
            ("DATASTORE_TYPE", "etcdv3"),
            ("CALICO_DATASTORE_TYPE", "embedded"),
        ];
        check(r#"{"name": "n"}"#, &both, Type::Embedded);
    }

    #[test]
    fn settings_of_kubernetes_are_found_in_both_sections() {
        let text = r#"{"name": "n",
            "policy": {"k8s_api_root": "https://a:6443/api/v1/", "k8s_auth_token": "t"},
            "kubernetes": {"kubeconfig": "/k"}, "calico_api_group": "projectcalico.org/v3"}"#;
        let found = kubernetes(&config(text), &|_| None);
        assert_eq!(found.api_endpoint.as_deref(), Some("https://a:6443"));
        assert_eq!(found.token.as_deref(), Some("t"));
        assert_eq!(found.kubeconfig, [PathBuf::from("/k")]);
        assert_eq!(found.api_group, Some(Group::V3));
    }

    #[test]
    fn what_is_not_there_is_said() {
        let error = |text: &str| {
            let config = config(text);
            let kind = datastore_type(&config, &|_| None);
            let error = match kind {
                Ok(_) => etcd(&config, &|_| None).expect_err("a refusal"),
                Err(error) => error,
            };
            error.to_string()
        };
        assert!(error(r#"{"name": "n", "datastore_type": "zookeeper"}"#).contains("`zookeeper`"));
        assert!(error(r#"{"name": "n", "etcd_discovery_srv": "e.org"}"#).contains("`e.org`"));
    }
}
