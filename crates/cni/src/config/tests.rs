use super::*;
use tortie_error::Causes;

#[track_caller]
fn refused(text: &str, code: Code, expected: &str) {
    let error = NetworkConfig::parse(text.as_bytes()).expect_err("a refusal");
    assert_eq!(error.code(), code, "{error}");
    let message = Causes(&error).to_string();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_configuration_as_calico_installs_it_is_read() {
    let text = r#"{
        "name": "k8s-pod-network", "cniVersion": "1.0.0", "type": "calico", "log_level": "info",
        "log_file_path": "/var/log/calico/cni/cni.log", "datastore_type": "kubernetes", "nodename": "n1",
        "mtu": 0, "ipam": {"type": "calico-ipam", "assign_ipv6": "true", "ipv4_pools": ["10.0.0.0/16", "pool"]},
        "policy": {"type": "k8s"}, "kubernetes": {"kubeconfig": "/etc/cni/net.d/calico-kubeconfig"},
        "container_settings": {"allow_ip_forwarding": true}, "feature_control": null, "unknown": {"a": [null]},
        "args": {"org.apache.mesos": {"network_info": {"labels": {"labels": [{"key": "k", "value": "v"}]}}}}
    }"#;
    let config = NetworkConfig::parse(text.as_bytes()).expect("a configuration");
    assert_eq!(config.version().expect("a version"), CniVersion::V1_0_0);
    assert!(config.is_kubernetes_policy() && config.is_calico_ipam());
    assert!(config.container_settings.allow_ip_forwarding);
    assert_eq!(config.ipam.ipv4_pools, ["10.0.0.0/16", "pool"]);
    assert_eq!(config.mesos_labels()[0].key, "k");
}

#[test]
fn what_is_wrong_is_named_with_key_and_value() {
    refused("{", Code::Decode, "not JSON");
    refused("[]", Code::Decode, "not a JSON object");
    refused(
        r#"{"name": "n", "ipam": {"assign_ipv4": true}}"#,
        Code::Decode,
        "`ipam.assign_ipv4`: invalid type: boolean `true`",
    );
    refused(r#"{"name": "n", "mtu": "1500"}"#, Code::Decode, "`mtu`");
    refused(r#"{"name": "n", "mtu": -1}"#, Code::Decode, "-1");
    refused("{}", Code::InvalidConfig, "`name` is missing");
    refused(r#"{"name": "a b"}"#, Code::InvalidConfig, "`a b`");
    refused(
        r#"{"name": "n", "device_type": "tap"}"#,
        Code::InvalidConfig,
        "`tap`",
    );
    refused(
        r#"{"name": "n", "policy_setup_timeout_seconds": -3}"#,
        Code::InvalidConfig,
        "-3",
    );
    refused(
        r#"{"name": "n", "dataplane_options": {"type": "grpc", "socket": "/s"}}"#,
        Code::UnsupportedField,
        "grpc",
    );
    refused(
        r#"{"name": "n", "cniVersion": "1.2.0"}"#,
        Code::IncompatibleVersion,
        "`1.2.0`",
    );
}

#[test]
fn secrets_are_not_shown() {
    let text = r#"{"name": "n", "policy": {"k8s_auth_token": "sesame"}}"#;
    let config = NetworkConfig::parse(text.as_bytes()).expect("a configuration");
    assert!(!format!("{config:?}").contains("sesame"));
}

#[test]
fn the_version_is_told_even_of_a_configuration_that_is_refused() {
    assert_eq!(
        written_version_of(br#"{"cniVersion": "0.4.0", "mtu": []}"#),
        "0.4.0"
    );
    assert_eq!(written_version_of(b"\xff"), "");
}
