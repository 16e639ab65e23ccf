use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;
use tortie_error::Causes;

use super::*;

struct Site {
    folder: TempDir,
    options: Options,
}

fn site() -> Site {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for name in ["bin", "net.d", "tls", "others"] {
        fs::create_dir(path(name)).expect("a folder");
    }
    fs::write(path("tortie"), "binary").expect("a file");
    fs::set_permissions(path("tortie"), fs::Permissions::from_mode(0o755)).expect("permissions");
    let values = Values {
        log_level: "info".to_owned(),
        mtu: "1440".to_owned(),
        require_mtu_file: "false".to_owned(),
        node_name: "n1".to_owned(),
        ..Values::default()
    };
    let options = Options {
        binary: path("tortie"),
        binary_folders: vec![path("bin"), path("nowhere")],
        other_plugins: Some(path("others")),
        skipped: vec!["flannel".to_owned()],
        replace_binaries: true,
        config_folder: path("net.d"),
        config_folder_on_node: "/etc/cni/net.d".into(),
        config_name: "10-calico.conflist".to_owned(),
        old_config_name: "10-calico.conflist".to_owned(),
        template: None,
        values,
        tls_folder: path("tls"),
        service_account: None,
        kubeconfig: None,
    };
    Site { folder, options }
}

impl Site {
    fn install(&self) -> Result<Plan> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let plan = runtime.expect("a runtime").block_on(plan(&self.options))?;
        plan.carry_out()?;
        Ok(plan)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).expect("a file")
    }

    fn mode(&self, name: &str) -> u32 {
        let metadata = fs::metadata(self.folder.path().join(name)).expect("a file");
        metadata.permissions().mode() & 0o7777
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect("a file");
    }
}

#[test]
fn binaries_and_configuration_are_put_in_place() {
    let mut site = site();
    site.write("others/portmap", "p");
    site.write("others/flannel", "f");
    site.write("others/install", "i");
    site.write("kubeconfig", "k");
    site.options.kubeconfig = Some(site.folder.path().join("kubeconfig"));
    site.install().expect("an installation");
    for name in ["bin/calico", "bin/calico-ipam"] {
        assert_eq!(
            (site.read(name).as_str(), site.mode(name)),
            ("binary", 0o755)
        );
    }
    assert_eq!(site.read("bin/portmap"), "p");
    let names = fs::read_dir(site.folder.path().join("bin"))
        .expect("a folder")
        .count();
    assert_eq!(names, 3);
    assert_eq!(site.mode("net.d/10-calico.conflist"), 0o600);
    assert_eq!(site.mode("net.d/calico-kubeconfig"), 0o600);
    let config: serde_json::Value =
        serde_json::from_str(&site.read("net.d/10-calico.conflist")).expect("JSON");
    let calico = &config["plugins"][0];
    assert_eq!(calico["mtu"], 1440);
    assert_eq!(
        calico["kubernetes"]["kubeconfig"],
        "/etc/cni/net.d/calico-kubeconfig"
    );
}

#[test]
fn a_second_installation_changes_what_is_outdated() {
    let site = site();
    site.install().expect("an installation");
    site.write("tortie", "newer!");
    site.write("net.d/10-calico.conflist", "{}");
    site.install().expect("an installation");
    assert_eq!(site.read("bin/calico"), "newer!");
    assert!(
        site.read("net.d/10-calico.conflist")
            .contains("k8s-pod-network")
    );
}

#[test]
fn binaries_that_are_there_can_be_left_alone() {
    let mut site = site();
    site.options.replace_binaries = false;
    site.write("bin/calico", "old");
    site.install().expect("an installation");
    assert_eq!(site.read("bin/calico"), "old");
    assert_eq!(site.read("bin/calico-ipam"), "binary");
    site.options.binary_folders = vec!["/proc/nowhere".into()];
    let error = site.install().expect_err("a refusal");
    assert!(error.to_string().contains("/proc/nowhere"), "{error}");
}

#[test]
fn certificates_for_etcd_are_installed_and_named() {
    let mut site = site();
    site.write("tls/etcd-ca", "ca");
    site.options.template = Some(
        r#"{"etcd_ca_cert_file": "__ETCD_CA_CERT_FILE__", "etcd_cert_file": "__ETCD_CERT_FILE__"}"#
            .to_owned(),
    );
    site.options.config_name = "20-mine.conflist".to_owned();
    site.write("net.d/10-calico.conflist", "{}");
    site.install().expect("an installation");
    assert_eq!(site.read("net.d/calico-tls/etcd-ca"), "ca");
    assert_eq!(
        site.read("net.d/20-mine.conflist"),
        r#"{"etcd_ca_cert_file": "/etc/cni/net.d/calico-tls/etcd-ca", "etcd_cert_file": ""}"#
    );
    assert!(!site.folder.path().join("net.d/10-calico.conflist").exists());
    site.write("tls/etcd-ca", "new");
    refresh_tls(&site.options).expect("certificates");
    assert_eq!(site.read("net.d/calico-tls/etcd-ca"), "new");
}

#[test]
fn a_configuration_that_is_not_json_is_refused_without_showing_it() {
    let mut site = site();
    site.options.template = Some("{\"token\": \"sesame\",}".to_owned());
    let error = site.install().expect_err("a refusal");
    assert!(!Causes(&error).to_string().contains("sesame"), "{error}");
    assert!(!site.folder.path().join("bin/calico").exists());
}

#[test]
fn a_pods_account_becomes_a_kubeconfig() {
    let mut site = site();
    let account = site.folder.path().join("account");
    fs::create_dir(&account).expect("a folder");
    for (name, text) in [
        ("token", "own\n"),
        ("ca.crt", "x"),
        ("namespace", "kube-system"),
    ] {
        fs::write(account.join(name), text).expect("a file");
    }
    site.options.service_account = Some(ServiceAccount {
        folder: account,
        plugins_account: "calico-cni-plugin".to_owned(),
        protocol: String::new(),
        host: "::1".to_owned(),
        // Nobody listens there, so no other token can be had.
        port: "1".to_owned(),
        skip_tls_verify: true,
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let plan = runtime
        .expect("a runtime")
        .block_on(plan(&site.options))
        .expect("a plan");
    plan.carry_out().expect("an installation");
    let text = site.read("net.d/calico-kubeconfig");
    for expected in [
        "server: https://[::1]:1\n",
        "    token: own\n",
        "insecure-skip-tls-verify: true",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!format!("{plan:?}").contains("own\n"));
}
