//! The settings, from the file and the environment.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tortie_api::scalar::felix_bool;
use tortie_api::yaml;

use super::{DatastoreType, Source};
use tortie_store::etcd::{EtcdConfig, Pem};
use tortie_store::kubernetes::KubernetesConfig;
use tortie_store::{Error, Result};
use tortie_variables as variables;

/// The file that calicoctl reads unless told otherwise.
pub const DEFAULT_FILE: &str = "/etc/calico/calicoctl.cfg";

macro_rules! settings {
    ($($(#[$doc:meta])* $field:ident, $file:literal, $variable:expr;)*) => {
        /// What calicoctl can be told about its datastore; empty where nothing is said.
        #[derive(Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
        #[serde(try_from = "BTreeMap<String, Option<String>>", into = "BTreeMap<&'static str, String>")]
        pub struct Settings {
            $(#[doc = concat!("`", $file, "` in the file.")] $(#[$doc])* pub $field: String,)*
        }

        impl Settings {
            /// What is said, by the names of the file and, where there is one, of the variable.
            pub fn given(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
                let all = [$(($file, $variable, self.$field.as_str()),)*];
                all.into_iter().filter(|(_, _, value)| !value.is_empty())
            }

            fn by_name(&mut self, name: &str) -> Option<&mut String> {
                match name {
                    $($file => Some(&mut self.$field),)*
                    _ => None,
                }
            }

            /// Takes what is not said yet from variables.
            pub fn fill_from(&mut self, environment: Source<'_>) {
                $(if self.$field.is_empty() && !$variable.is_empty() {
                    self.$field = variable(environment, $variable).unwrap_or_default();
                })*
            }
        }
    };
}

settings! {
    datastore_type, "datastoreType", variables::DATASTORE_TYPE;
    etcd_endpoints, "etcdEndpoints", variables::ETCD_ENDPOINTS;
    etcd_discovery_srv, "etcdDiscoverySrv", variables::ETCD_DISCOVERY_SRV;
    etcd_username, "etcdUsername", variables::ETCD_USERNAME;
    etcd_password, "etcdPassword", variables::ETCD_PASSWORD;
    etcd_key_file, "etcdKeyFile", variables::ETCD_KEY_FILE;
    etcd_cert_file, "etcdCertFile", variables::ETCD_CERT_FILE;
    etcd_ca_cert_file, "etcdCACertFile", variables::ETCD_CA_CERT_FILE;
    etcd_key, "etcdKey", "";
    etcd_cert, "etcdCert", "";
    etcd_ca_cert, "etcdCACert", "";
    kubeconfig, "kubeconfig", variables::KUBECONFIG;
    kubeconfig_inline, "kubeconfigInline", "";
    k8s_api_endpoint, "k8sAPIEndpoint", variables::K8S_API_ENDPOINT;
    k8s_api_token, "k8sAPIToken", variables::K8S_API_TOKEN;
    k8s_key_file, "k8sKeyFile", variables::K8S_KEY_FILE;
    k8s_cert_file, "k8sCertFile", variables::K8S_CERT_FILE;
    k8s_ca_file, "k8sCAFile", variables::K8S_CA_FILE;
    k8s_insecure_skip_tls_verify, "k8sInsecureSkipTLSVerify", variables::K8S_INSECURE_SKIP_TLS_VERIFY;
    /// Read because calicoctl reads it; only the syncers use it.
    k8s_disable_node_poll, "k8sDisableNodePoll", variables::K8S_DISABLE_NODE_POLL;
    use_pod_cidr, "usePodCIDR", variables::USE_POD_CIDR;
    k8s_client_qps, "k8sClientQPS", variables::K8S_CLIENT_QPS;
    k8s_client_burst, "k8sClientBurst", variables::K8S_CLIENT_BURST;
    k8s_current_context, "k8sCurrentContext", "K8S_CURRENT_CONTEXT";
    calico_api_group, "calicoAPIGroup", variables::CALICO_API_GROUP;
}

/// Names of settings that are kept nowhere.
const SECRETS: [&str; 4] = ["etcdPassword", "etcdKey", "kubeconfigInline", "k8sAPIToken"];

/// The value of a variable, or of the same with `CALICO_` in front.
fn variable(environment: Source<'_>, name: &str) -> Option<String> {
    let prefixed = if name.starts_with("CALICO_") {
        None
    } else {
        environment(&format!("CALICO_{name}"))
    };
    prefixed
        .or_else(|| environment(name))
        .filter(|value| !value.is_empty())
}

/// The envelope of the configuration file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    metadata: serde::de::IgnoredAny,
    #[serde(default)]
    spec: Option<Settings>,
}

/// Every setting is text, as it is written.
impl TryFrom<BTreeMap<String, Option<String>>> for Settings {
    type Error = String;

    fn try_from(given: BTreeMap<String, Option<String>>) -> Result<Self, String> {
        let mut settings = Self::default();
        for (name, value) in given {
            let Some(field) = settings.by_name(&name) else {
                return Err(format!(
                    "field in document is not recognized or is in the wrong location: {name}"
                ));
            };
            *field = value.unwrap_or_default();
        }
        Ok(settings)
    }
}

impl From<Settings> for BTreeMap<&'static str, String> {
    fn from(settings: Settings) -> Self {
        let given = settings.given();
        let public = given.filter(|(name, _, _)| !Settings::is_secret(name));
        public
            .map(|(name, _, value)| (name, value.to_owned()))
            .collect()
    }
}

/// Leaves out what is secret.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = BTreeMap::<&str, String>::from(self.clone());
        f.debug_map().entries(given).finish()
    }
}

impl Settings {
    /// Reads the file, if there is one, and fills in from the environment what it leaves open. A file that was asked
    /// for must exist; the usual one need not.
    pub fn load(file: &Path, environment: Source<'_>) -> Result<Self> {
        let what = || format!("Error reading config file: {}", file.display());
        let mut settings = match fs::read_to_string(file) {
            Ok(text) => Self::parse(&text).map_err(|error| Error::other(what(), error))?,
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound
                    && file == Path::new(DEFAULT_FILE) =>
            {
                Self::default()
            }
            Err(error) => return Err(Error::other(what(), error)),
        };
        settings.fill_from(environment);
        Ok(settings)
    }

    fn parse(text: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let file: File = yaml::read(text)?;
        if file.api_version != tortie_api::API_VERSION || file.kind != "CalicoAPIConfig" {
            let (version, kind) = (file.api_version, file.kind);
            let expected = tortie_api::API_VERSION;
            return Err(format!(
                "apiVersion and kind are `{version} {kind}`, not `{expected} CalicoAPIConfig`"
            )
            .into());
        }
        let _ = file.metadata;
        Ok(file.spec.unwrap_or_default())
    }

    /// Takes secrets that are not given from somewhere else.
    pub(super) fn fill_secrets(&mut self, other: &Self) {
        for (name, _, value) in other.given() {
            if Self::is_secret(name)
                && let Some(field) = self.by_name(name).filter(|field| field.is_empty())
            {
                value.clone_into(field);
            }
        }
    }

    /// Whether a setting is kept nowhere.
    pub fn is_secret(name: &str) -> bool {
        SECRETS.contains(&name)
    }

    /// Paths for processes in other folders.
    pub(super) fn make_paths_absolute(&mut self) -> Result<()> {
        let files = [
            &mut self.etcd_key_file,
            &mut self.etcd_cert_file,
            &mut self.etcd_ca_cert_file,
            &mut self.kubeconfig,
            &mut self.k8s_key_file,
            &mut self.k8s_cert_file,
            &mut self.k8s_ca_file,
        ];
        for field in files {
            let paths = std::env::split_paths(OsStr::new(field.as_str()));
            let paths = paths.filter(|path| !path.as_os_str().is_empty());
            let paths: std::io::Result<Vec<_>> = paths.map(std::path::absolute).collect();
            let joined = paths.map(std::env::join_paths);
            let joined =
                joined.map_err(|error| Error::other(format!("the path `{field}`"), error))?;
            let text = joined.ok().and_then(|joined| joined.into_string().ok());
            *field = text.ok_or_else(|| {
                Error::message(format!("the path `{field}` cannot be made absolute"))
            })?;
        }
        Ok(())
    }

    /// The datastore that the settings mean: the type if given, else what the other settings speak of, if they speak of
    /// any.
    pub fn datastore(&self) -> Result<Option<DatastoreType>> {
        let speaks_of_etcd = !self.etcd_endpoints.is_empty() || !self.etcd_discovery_srv.is_empty();
        let speaks_of_kubernetes = !self.kubeconfig.is_empty()
            || !self.kubeconfig_inline.is_empty()
            || !self.k8s_api_endpoint.is_empty();
        match self.datastore_type.as_str() {
            "" if speaks_of_etcd => Ok(Some(DatastoreType::Etcdv3)),
            "" if speaks_of_kubernetes => Ok(Some(DatastoreType::Kubernetes)),
            "" => Ok(None),
            text => text.parse().map(Some),
        }
    }

    /// How to reach etcd.
    pub fn etcd(&self) -> Result<EtcdConfig> {
        if !self.etcd_discovery_srv.is_empty() {
            return Err(Error::message(format!(
                "etcd discovery through DNS (ETCD_DISCOVERY_SRV is `{}`) is not supported; list the members in ETCD_ENDPOINTS",
                self.etcd_discovery_srv
            )));
        }
        let pem = |inline: &str, file: &str| match (inline, file) {
            ("", "") => None,
            ("", file) => Some(Pem::File(file.into())),
            (text, _) => Some(Pem::Inline(text.to_owned())),
        };
        let endpoints = self.etcd_endpoints.split(',').map(str::trim);
        Ok(EtcdConfig {
            endpoints: endpoints.map(str::to_owned).collect(),
            username: self.etcd_username.clone(),
            password: self.etcd_password.clone(),
            ca: pem(&self.etcd_ca_cert, &self.etcd_ca_cert_file),
            cert: pem(&self.etcd_cert, &self.etcd_cert_file),
            key: pem(&self.etcd_key, &self.etcd_key_file),
        })
    }

    /// How to reach a cluster.
    pub fn kubernetes(&self) -> Result<KubernetesConfig> {
        let set = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Ok(KubernetesConfig {
            kubeconfig: std::env::split_paths(&self.kubeconfig)
                .filter(|path| !path.as_os_str().is_empty())
                .collect(),
            kubeconfig_inline: set(&self.kubeconfig_inline),
            context: set(&self.k8s_current_context),
            api_endpoint: set(&self.k8s_api_endpoint),
            token: set(&self.k8s_api_token),
            ca_file: set(&self.k8s_ca_file).map(PathBuf::from),
            cert_file: set(&self.k8s_cert_file).map(PathBuf::from),
            key_file: set(&self.k8s_key_file).map(PathBuf::from),
            insecure_skip_tls_verify: truth(
                variables::K8S_INSECURE_SKIP_TLS_VERIFY,
                &self.k8s_insecure_skip_tls_verify,
            )?,
            api_group: KubernetesConfig::parse_api_group(&self.calico_api_group),
            use_pod_cidr: truth(variables::USE_POD_CIDR, &self.use_pod_cidr)?,
            ..KubernetesConfig::default()
        })
    }
}

/// Whether a setting is on. Its words are those of all who write it: Go's in variables, YAML's in files.
fn truth(name: &str, text: &str) -> Result<bool> {
    match text.trim() {
        "" => Ok(false),
        text => felix_bool(text)
            .ok_or_else(|| Error::message(format!("{name} is `{text}`; it must be true or false"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(
        variables: &'static [(&'static str, &'static str)],
    ) -> impl Fn(&str) -> Option<String> + Sync {
        move |name| {
            variables
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, value)| (*value).to_owned())
        }
    }

    #[track_caller]
    fn check(
        variables: &'static [(&'static str, &'static str)],
        expected: impl Into<Option<DatastoreType>>,
    ) {
        let settings = Settings::load(Path::new(DEFAULT_FILE), &with(variables)).unwrap();
        assert_eq!(
            settings.datastore().unwrap(),
            expected.into(),
            "{variables:?}"
        );
    }

    #[test]
    fn the_environment_decides_the_datastore() {
        check(&[], None);
        check(
            &[("ETCD_ENDPOINTS", "http://127.0.0.1:2379")],
            DatastoreType::Etcdv3,
        );
        check(&[("KUBECONFIG", "/k")], DatastoreType::Kubernetes);
        check(
            &[("KUBECONFIG", "/k"), ("DATASTORE_TYPE", "etcdv3")],
            DatastoreType::Etcdv3,
        );
        check(
            &[
                ("DATASTORE_TYPE", "etcdv3"),
                ("CALICO_DATASTORE_TYPE", "kubernetes"),
            ],
            DatastoreType::Kubernetes,
        );
    }

    #[test]
    fn the_file_wins_over_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("calicoctl.cfg");
        fs::write(&file, "apiVersion: projectcalico.org/v3\nkind: CalicoAPIConfig\nmetadata:\nspec:\n  datastoreType: etcdv3\n  etcdEndpoints: http://a:1\n").unwrap();
        let settings = Settings::load(
            &file,
            &with(&[("ETCD_ENDPOINTS", "http://b:2"), ("ETCD_USERNAME", "u")]),
        )
        .unwrap();
        assert_eq!(
            (
                settings.etcd_endpoints.as_str(),
                settings.etcd_username.as_str()
            ),
            ("http://a:1", "u")
        );
    }

    #[test]
    fn a_switch_is_on_by_any_of_its_words_and_refused_otherwise() {
        let switch = |text: &str| {
            let settings = Settings {
                k8s_insecure_skip_tls_verify: text.to_owned(),
                use_pod_cidr: text.to_owned(),
                ..Settings::default()
            };
            let config = settings.kubernetes();
            config.map(|config| (config.insecure_skip_tls_verify, config.use_pod_cidr))
        };
        for on in ["true", "True", "1", "t", "yes"] {
            assert_eq!(switch(on).unwrap(), (true, true), "{on}");
        }
        for off in ["", "false", "0", "no"] {
            assert_eq!(switch(off).unwrap(), (false, false), "{off}");
        }
        let error = switch("perhaps").unwrap_err().to_string();
        assert!(error.contains("`perhaps`"), "{error}");
    }

    #[test]
    fn a_file_that_was_asked_for_must_exist_and_be_known() {
        assert!(Settings::load(Path::new("/nonexistent/x.cfg"), &with(&[])).is_err());
        let error = Settings::parse(
            "apiVersion: projectcalico.org/v3\nkind: CalicoAPIConfig\nspec:\n  bogus: 1\n",
        );
        let Err(error) = error else {
            panic!("an unknown field was accepted")
        };
        assert!(error.to_string().contains("bogus"), "{error}");
    }
}
