//! The network's configuration, from a text with words to be replaced.

use std::path::PathBuf;

use serde_json::Value;

use crate::error::{Code, Error, Result};

/// What is installed unless another text is given.
const USUAL: &str = r#"{
  "name": "k8s-pod-network",
  "cniVersion": "1.0.0",
  "plugins": [
    {
      "type": "calico",
      "log_level": "__LOG_LEVEL__",
      "log_file_path": "__LOG_FILE_PATH__",
      "datastore_type": "__DATASTORE_TYPE__",
      "nodename": "__KUBERNETES_NODE_NAME__",
      "mtu": __CNI_MTU__,
      "ipam": {"type": "calico-ipam"},
      "policy": {"type": "k8s"},
      "kubernetes": {"kubeconfig": "__KUBECONFIG_FILEPATH__"},
      "require_mtu_file": __REQUIRE_MTU_FILE__,
      "calico_api_group": "__CALICO_API_GROUP__"
    },
    {
      "type": "portmap",
      "snat": true,
      "capabilities": {"portMappings": true}
    },
    {
      "type": "bandwidth",
      "capabilities": {"bandwidth": true}
    }
  ]
}
"#;

/// What words are replaced with.
#[derive(Debug, Clone, Default)]
pub struct Values {
    pub log_level: String,
    pub log_file_path: String,
    pub log_file_max_size: String,
    pub log_file_max_age: String,
    pub log_file_max_count: String,
    pub datastore_type: String,
    /// `__KUBERNETES_NODE_NAME__`
    pub node_name: String,
    /// `__CNI_MTU__`
    pub mtu: String,
    /// `__KUBERNETES_SERVICE_HOST__`
    pub service_host: String,
    /// `__KUBERNETES_SERVICE_PORT__`
    pub service_port: String,
    /// `__SERVICEACCOUNT_TOKEN__`
    pub token: String,
    /// `__CALICO_API_GROUP__`; if it is empty, the API server is asked.
    pub api_group: String,
    pub etcd_endpoints: String,
    pub etcd_discovery_srv: String,
    pub require_mtu_file: String,
}

/// Where the node finds other files.
pub(super) struct Places<'a> {
    pub(super) kubeconfig: PathBuf,
    pub(super) tls_folder: PathBuf,
    /// Those that there are.
    pub(super) tls_files: &'a [&'static str],
}

/// The configuration. One that would not be JSON is refused, without a word of what is in it.
pub(super) fn render(
    template: Option<&str>,
    values: &Values,
    places: &Places<'_>,
) -> Result<String> {
    let tls = |name: &str| {
        if places.tls_files.contains(&name) {
            places.tls_folder.join(name).display().to_string()
        } else {
            String::new()
        }
    };
    let words = [
        ("__LOG_LEVEL__", values.log_level.clone()),
        ("__LOG_FILE_PATH__", values.log_file_path.clone()),
        ("__LOG_FILE_MAX_SIZE__", values.log_file_max_size.clone()),
        ("__LOG_FILE_MAX_AGE__", values.log_file_max_age.clone()),
        ("__LOG_FILE_MAX_COUNT__", values.log_file_max_count.clone()),
        ("__DATASTORE_TYPE__", values.datastore_type.clone()),
        ("__KUBERNETES_NODE_NAME__", values.node_name.clone()),
        (
            "__KUBECONFIG_FILEPATH__",
            places.kubeconfig.display().to_string(),
        ),
        ("__CNI_MTU__", values.mtu.clone()),
        ("__KUBERNETES_SERVICE_HOST__", values.service_host.clone()),
        ("__KUBERNETES_SERVICE_PORT__", values.service_port.clone()),
        ("__SERVICEACCOUNT_TOKEN__", values.token.clone()),
        ("__CALICO_API_GROUP__", values.api_group.clone()),
        ("__ETCD_CERT_FILE__", tls("etcd-cert")),
        ("__ETCD_CA_CERT_FILE__", tls("etcd-ca")),
        ("__ETCD_KEY_FILE__", tls("etcd-key")),
        ("__ETCD_ENDPOINTS__", values.etcd_endpoints.clone()),
        ("__ETCD_DISCOVERY_SRV__", values.etcd_discovery_srv.clone()),
        ("__REQUIRE_MTU_FILE__", values.require_mtu_file.clone()),
    ];
    let mut text = template.unwrap_or(USUAL).to_owned();
    for (word, value) in words {
        text = text.replace(word, &value);
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(_)) => Ok(text),
        Ok(_) => Err(Error::new(
            Code::Decode,
            "the network configuration is not a JSON object",
        )),
        Err(error) => {
            let message = format!(
                "the network configuration is not JSON: line {}, column {}",
                error.line(),
                error.column()
            );
            Err(Error::new(Code::Decode, message))
        }
    }
}
