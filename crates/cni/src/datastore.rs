//! The datastore that a configuration means.

use std::sync::Arc;

use tortie_client::Client;
use tortie_client::connect::{self, DatastoreType, Settings, Source, Target};
use tortie_store::{Key, Kind, Resource, Store};

use crate::config::NetworkConfig;
use crate::error::{Code, Error, Result};

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
    pub async fn open(config: &NetworkConfig, environment: Source<'_>) -> Result<Self> {
        let meant = target(config, environment)?.datastore().map_err(wrong)?;
        let opened = meant.open().await?;
        Ok(Self {
            client: opened.client,
            cluster: opened.cluster,
            place: meant.place(),
            beside: None,
        })
    }

    /// The cluster, whether or not it is also the datastore.
    pub(crate) async fn cluster(
        &self,
        config: &NetworkConfig,
        environment: Source<'_>,
    ) -> Result<kube::Client> {
        if let Some(cluster) = self.cluster.as_ref().or(self.beside.as_ref()) {
            return Ok(cluster.clone());
        }
        let meant = target(config, environment)?.kubernetes().map_err(wrong)?;
        Ok(meant.client().await?)
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

/// What tells the datastore that a configuration means from others, for processes of this machine.
pub(crate) fn place(config: &NetworkConfig, environment: Source<'_>) -> Result<String> {
    let meant = target(config, environment)?.datastore().map_err(wrong)?;
    Ok(meant.place())
}

/// The datastore that a configuration means; what it leaves open comes from the environment.
fn target(config: &NetworkConfig, environment: Source<'_>) -> Result<Target> {
    let NetworkConfig {
        policy,
        kubernetes: section,
        ..
    } = config;
    // Of old, the whole address of the API's first version was to be given.
    let old_root = policy.k8s_api_root.split("/api/").next();
    let mut settings = Settings {
        datastore_type: config.datastore_type.clone(),
        etcd_endpoints: config.etcd_endpoints.clone(),
        etcd_discovery_srv: config.etcd_discovery_srv.clone(),
        etcd_key_file: config.etcd_key_file.clone(),
        etcd_cert_file: config.etcd_cert_file.clone(),
        etcd_ca_cert_file: config.etcd_ca_cert_file.clone(),
        kubeconfig: section.kubeconfig.clone(),
        k8s_api_endpoint: match section.k8s_api_root.as_str() {
            "" => old_root.unwrap_or_default().to_owned(),
            root => root.to_owned(),
        },
        k8s_api_token: policy.k8s_auth_token.clone(),
        k8s_key_file: policy.k8s_client_key.clone(),
        k8s_cert_file: policy.k8s_client_certificate.clone(),
        k8s_ca_file: policy.k8s_certificate_authority.clone(),
        calico_api_group: config.calico_api_group.clone(),
        ..Settings::default()
    };
    settings.fill_from(environment);
    if settings.etcd_endpoints.is_empty() && !config.etcd_authority.is_empty() {
        let scheme = match config.etcd_scheme.as_str() {
            "" => "http",
            scheme => scheme,
        };
        settings.etcd_endpoints = format!("{scheme}://{}", config.etcd_authority);
    }
    let path = Some(&config.datastore_path).filter(|path| !path.as_os_str().is_empty());
    let said = settings.datastore().map_err(wrong)?;
    let datastore = match (said, path) {
        // A network with a file may also say where pods are looked up.
        (Some(DatastoreType::Kubernetes), Some(_)) if settings.datastore_type.is_empty() => {
            DatastoreType::Embedded
        }
        (Some(said), _) => said,
        (None, Some(_)) => DatastoreType::Embedded,
        (None, None) => DatastoreType::Kubernetes,
    };
    Ok(Target {
        datastore,
        data_file: path
            .cloned()
            .unwrap_or_else(|| connect::data_file(environment)),
        config: connect::DEFAULT_FILE.into(),
        settings,
        interface_prefix: connect::interface_prefix(environment),
    })
}

fn wrong(error: tortie_store::Error) -> Error {
    Error::of(Code::InvalidConfig, "network configuration")(error)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use tortie_api::crd::Group;
    use tortie_error::Causes;

    use super::*;

    fn config(text: &str) -> NetworkConfig {
        NetworkConfig::parse(text.as_bytes()).expect("a configuration")
    }

    #[track_caller]
    fn check(text: &str, variables: &[(&str, &str)], expected: DatastoreType) {
        let environment = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let found = target(&config(text), &environment).expect("a datastore");
        assert_eq!(found.datastore, expected, "{text} {variables:?}");
    }

    #[test]
    fn the_configuration_decides_before_the_environment() {
        check(r#"{"name": "n"}"#, &[], DatastoreType::Kubernetes);
        let endpoints = [("ETCD_ENDPOINTS", "http://e:1")];
        check(r#"{"name": "n"}"#, &endpoints, DatastoreType::Etcdv3);
        let text = r#"{"name": "n", "datastore_type": "kubernetes"}"#;
        check(text, &endpoints, DatastoreType::Kubernetes);
        let text = r#"{"name": "n", "etcd_authority": "e:1"}"#;
        check(text, &[], DatastoreType::Etcdv3);
        let text = r#"{"name": "n", "datastore_path": "/x"}"#;
        check(text, &[], DatastoreType::Embedded);
        let both = [
            ("DATASTORE_TYPE", "etcdv3"),
            ("CALICO_DATASTORE_TYPE", "embedded"),
        ];
        check(r#"{"name": "n"}"#, &both, DatastoreType::Embedded);
    }

    #[test]
    fn settings_of_kubernetes_are_found_in_both_sections() {
        let text = r#"{"name": "n",
            "policy": {"k8s_api_root": "https://a:6443/api/v1/", "k8s_auth_token": "t"},
            "kubernetes": {"kubeconfig": "/k"}, "calico_api_group": "projectcalico.org/v3"}"#;
        let found = target(&config(text), &|_| None).expect("a datastore");
        let found = found.kubernetes().expect("a cluster");
        assert_eq!(found.api_endpoint.as_deref(), Some("https://a:6443"));
        assert_eq!(found.token.as_deref(), Some("t"));
        assert_eq!(found.kubeconfig, [PathBuf::from("/k")]);
        assert_eq!(found.api_group, Some(Group::V3));
    }

    #[test]
    fn the_environment_means_what_it_means_to_all_programs() {
        let environment = |name: &str| match name {
            "K8S_INSECURE_SKIP_TLS_VERIFY" | "USE_POD_CIDR" => Some("1".to_owned()),
            "TORTIE_DATA_DIR" => Some("/d".to_owned()),
            _ => None,
        };
        let found = target(&config(r#"{"name": "n"}"#), &environment).expect("a datastore");
        assert_eq!(found.data_file, Path::new("/d/tortie.redb"));
        let found = found.kubernetes().expect("a cluster");
        assert!(found.insecure_skip_tls_verify && found.use_pod_cidr);
    }

    #[test]
    fn what_is_not_there_is_said() {
        let error = |text: &str| {
            let meant = target(&config(text), &|_| None);
            let meant = meant.and_then(|target| target.datastore().map_err(wrong));
            Causes(&meant.expect_err("a refusal")).to_string()
        };
        assert!(error(r#"{"name": "n", "datastore_type": "zookeeper"}"#).contains("`zookeeper`"));
        assert!(error(r#"{"name": "n", "etcd_discovery_srv": "e.org"}"#).contains("`e.org`"));
    }
}
