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
    for name in ["tls", "others"] {
        fs::create_dir(path(name)).expect("a folder");
    }
    fs::write(path("tortie"), own::sample("1")).expect("a file");
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
        binary_folders: vec![path("opt/bin"), path("nowhere")],
        other_plugins: Some(path("others")),
        skipped: vec!["flannel".to_owned()],
        make_folders: true,
        replaced: Replaced::Usual,
        config_folder: path("etc/net.d"),
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
        plan.carry_out(&mut |_, _| {})?;
        Ok(plan)
    }

    fn installed(&self) -> Installed {
        Installed {
            binary_folders: self.options.binary_folders.clone(),
            config_folder: self.options.config_folder.clone(),
        }
    }

    /// What a plan says was done and what was not.
    fn carry_out(plan: &Plan) -> (usize, usize) {
        let (mut done, mut unchanged) = (0, 0);
        plan.carry_out(&mut |_, outcome| match outcome {
            Outcome::Done => done += 1,
            Outcome::Unchanged => unchanged += 1,
        })
        .expect("a plan that works");
        (done, unchanged)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).expect("a file")
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("text")
    }

    fn mode(&self, name: &str) -> u32 {
        let metadata = fs::metadata(self.folder.path().join(name)).expect("a file");
        metadata.permissions().mode() & 0o7777
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join(folder)).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("a file")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }
}

#[test]
fn binaries_and_configuration_are_put_in_place() {
    let mut site = site();
    for name in ["ptp", "flannel", "install", "portmap"] {
        site.write(&format!("others/{name}"), "another's");
    }
    site.write("kubeconfig", "k");
    site.options.kubeconfig = Some(site.folder.path().join("kubeconfig"));
    site.install().expect("an installation");
    let mut expected = own::names().to_vec();
    expected.push("ptp");
    expected.sort_unstable();
    assert_eq!(site.names("opt/bin"), expected);
    for name in own::names() {
        let name = format!("opt/bin/{name}");
        assert_eq!(
            (site.read(&name), site.mode(&name)),
            (own::sample("1"), 0o755)
        );
    }
    assert_eq!(site.text("opt/bin/ptp"), "another's");
    for folder in ["opt", "opt/bin", "etc", "etc/net.d"] {
        assert_eq!(site.mode(folder), 0o755, "{folder}");
    }
    assert_eq!(site.mode("etc/net.d/10-calico.conflist"), 0o600);
    assert_eq!(site.mode("etc/net.d/calico-kubeconfig"), 0o600);
    let config: serde_json::Value =
        serde_json::from_str(&site.text("etc/net.d/10-calico.conflist")).expect("JSON");
    let calico = &config["plugins"][0];
    assert_eq!(calico["mtu"], 1440);
    assert_eq!(
        calico["kubernetes"]["kubeconfig"],
        "/etc/cni/net.d/calico-kubeconfig"
    );
    let types: Vec<&str> = ["0", "1", "2"]
        .iter()
        .filter_map(|place| config.pointer(&format!("/plugins/{place}/type"))?.as_str())
        .collect();
    assert_eq!(types, ["calico", "portmap", "bandwidth"]);
}

#[test]
fn all_names_are_one_file() {
    let site = site();
    site.install().expect("an installation");
    let inode = |name: &str| {
        let path = site.folder.path().join("opt/bin").join(name);
        std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).expect("a file"))
    };
    let inodes: Vec<u64> = own::names().into_iter().map(inode).collect();
    assert!(inodes.iter().all(|inode| *inode == inodes[0]), "{inodes:?}");
}

#[test]
fn a_second_installation_changes_what_is_outdated() {
    let site = site();
    let plan = site.install().expect("an installation");
    let (done, unchanged) = Site::carry_out(&plan);
    assert_eq!((done, unchanged), (0, plan.steps.len()));
    site.write("tortie", own::sample("2"));
    site.write("etc/net.d/10-calico.conflist", "{}");
    site.install().expect("an installation");
    for name in own::names() {
        assert_eq!(site.read(&format!("opt/bin/{name}")), own::sample("2"));
    }
    let config = site.text("etc/net.d/10-calico.conflist");
    assert!(config.contains("k8s-pod-network"));
}

#[test]
fn binaries_that_are_there_can_be_left_alone() {
    let mut site = site();
    site.options.replaced = Replaced::None;
    site.write("opt/bin/calico", "old");
    site.install().expect("an installation");
    assert_eq!(site.text("opt/bin/calico"), "old");
    assert_eq!(site.read("opt/bin/calico-ipam"), own::sample("1"));
    site.options.binary_folders = vec!["/proc/nowhere".into()];
    site.options.make_folders = false;
    let error = site.install().expect_err("a refusal");
    assert!(error.to_string().contains("/proc/nowhere"), "{error}");
}

#[test]
fn plugins_of_others_are_replaced_by_order_only() {
    let mut site = site();
    site.write("opt/bin/portmap", "another's");
    site.write("opt/bin/calico", "Calico's");
    site.write("opt/bin/tuning", own::sample("0"));
    site.install().expect("an installation");
    assert_eq!(site.text("opt/bin/portmap"), "another's");
    assert_eq!(site.read("opt/bin/calico"), own::sample("1"));
    assert_eq!(site.read("opt/bin/tuning"), own::sample("1"));
    site.options.replaced = Replaced::All;
    site.install().expect("an installation");
    assert_eq!(site.read("opt/bin/portmap"), own::sample("1"));
}

#[test]
fn what_was_installed_is_removed_and_nothing_else() {
    let mut site = site();
    site.write("opt/bin/portmap", "another's");
    site.write("opt/bin/bridge", "another's");
    site.write("tls/etcd-ca", "ca");
    site.write("kubeconfig", "k");
    site.options.kubeconfig = Some(site.folder.path().join("kubeconfig"));
    site.install().expect("an installation");
    site.write(
        "etc/net.d/87-podman.conflist",
        r#"{"plugins": [{"type": "bridge"}]}"#,
    );
    site.write("etc/net.d/notes", "calico");
    let plan = plan_removal(&site.installed()).expect("a plan");
    let first = plan.steps[0].to_string();
    assert!(first.contains("10-calico.conflist"), "{first}");
    let (done, unchanged) = Site::carry_out(&plan);
    assert_eq!((done, unchanged), (plan.steps.len(), 0));
    assert_eq!(site.names("opt/bin"), ["bridge", "portmap"]);
    assert_eq!(site.names("etc/net.d"), ["87-podman.conflist", "notes"]);
    assert!(
        plan_removal(&site.installed())
            .expect("a plan")
            .steps
            .is_empty()
    );
}

#[test]
fn an_installation_of_calico_is_not_ours_to_remove() {
    let site = site();
    assert!(
        plan_removal(&site.installed())
            .expect("a plan")
            .steps
            .is_empty()
    );
    site.write("opt/bin/calico", "Calico's");
    site.write("opt/bin/bandwidth", own::sample("1"));
    site.write(
        "etc/net.d/10-calico.conflist",
        r#"{"plugins": [{"type": "calico"}]}"#,
    );
    site.write("etc/net.d/calico-kubeconfig", "k");
    let plan = plan_removal(&site.installed()).expect("a plan");
    assert_eq!(Site::carry_out(&plan), (1, 0));
    assert_eq!(site.names("opt/bin"), ["calico"]);
    assert_eq!(
        site.names("etc/net.d"),
        ["10-calico.conflist", "calico-kubeconfig"]
    );
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
    site.write("etc/net.d/10-calico.conflist", "{}");
    site.install().expect("an installation");
    assert_eq!(site.text("etc/net.d/calico-tls/etcd-ca"), "ca");
    assert_eq!(
        site.text("etc/net.d/20-mine.conflist"),
        r#"{"etcd_ca_cert_file": "/etc/cni/net.d/calico-tls/etcd-ca", "etcd_cert_file": ""}"#
    );
    assert!(
        !site
            .folder
            .path()
            .join("etc/net.d/10-calico.conflist")
            .exists()
    );
    site.write("tls/etcd-ca", "new");
    refresh_tls(&site.options).expect("certificates");
    assert_eq!(site.text("etc/net.d/calico-tls/etcd-ca"), "new");
}

#[test]
fn a_configuration_that_is_not_json_is_refused_without_showing_it() {
    let mut site = site();
    site.options.template = Some("{\"token\": \"sesame\",}".to_owned());
    let error = site.install().expect_err("a refusal");
    assert!(!Causes(&error).to_string().contains("sesame"), "{error}");
    assert!(!site.folder.path().join("opt/bin/calico").exists());
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
    plan.carry_out(&mut |_, _| {}).expect("an installation");
    let text = site.text("etc/net.d/calico-kubeconfig");
    for expected in [
        "server: https://[::1]:1\n",
        "    token: own\n",
        "insecure-skip-tls-verify: true",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!format!("{plan:?}").contains("own\n"));
}
