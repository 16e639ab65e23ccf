//! Helm reads the chart as we do.

use std::process::Command;

use crate::{NAMESPACE, assert_same, comparable, deploy, output, render};

/// Values that between them take every branch of every template.
const WORLDS: [&[&str]; 7] = [
    &[],
    &[
        "bgp.enabled=true",
        "bgp.asNumber=64513",
        "ipv4.encapsulation=None",
    ],
    &[
        "datastore.type=etcd",
        "datastore.etcd.endpoints=https://etcd:2379",
        "datastore.etcd.tlsSecret=etcd",
        "metrics.enabled=true",
        "metrics.tlsSecret=metrics",
    ],
    &[
        "datastore.type=etcd",
        "datastore.etcd.endpoints=http://etcd:2379",
    ],
    &[
        "ipv4.enabled=false",
        "ipv6.enabled=true",
        "ipv6.encapsulation=VXLAN",
        "ipv6.podCidr=fd00:1::/48",
        "dataplane=nftables",
        "datastore.apiGroup=crd.projectcalico.org",
    ],
    &[
        "ipv6.enabled=true",
        "ipv6.encapsulation=VXLANCrossSubnet",
        "ipv4.encapsulation=IPIP",
        "dataplane=iptables",
        "metrics.enabled=true",
        "image.tag=v9",
        "mtu=1400",
    ],
    &[
        "ipv4.encapsulation=IPIPCrossSubnet",
        r"node.env.FELIX_LOGSEVERITYSCREEN=Debug",
        r"controllers.nodeSelector.kubernetes\.io/arch=arm64",
    ],
];

#[test]
fn helm_makes_the_same_objects() {
    for fields in WORLDS {
        let mut helm = helm();
        helm.args(["template", "tortie"])
            .arg(deploy("helm/tortie"))
            .args(["-n", NAMESPACE]);
        for field in fields {
            helm.args(["--set", field]);
        }
        let theirs = tortie_api::yaml::parse(&output(&mut helm)).unwrap();
        let theirs = theirs.iter().filter(|object| !object.is_null());
        assert_same(&comparable(&render(fields).objects), &comparable(theirs));
    }
}

/// What holds for names with a dash, and what stands in lists, is the same in files.
#[test]
fn helm_reads_the_same_files_of_values() {
    let text = "image: {pullSecrets: [one, two]}\nnode: {tolerations: [], resources: {limits: {memory: 1Gi}}}\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let mut helm = helm();
    helm.args(["template", "tortie", "-n", NAMESPACE, "-f"])
        .arg(file.path())
        .arg(deploy("helm/tortie"));
    let theirs = tortie_api::yaml::parse(&output(&mut helm)).unwrap();
    let values = tortie_install::Values::new([("file", text)], []).unwrap();
    let release = tortie_install::Release {
        namespace: NAMESPACE.to_owned(),
    };
    let ours = tortie_install::Chart::new()
        .unwrap()
        .render(&values, &release)
        .unwrap();
    assert_same(&comparable(&ours.objects), &comparable(&theirs));
}

#[test]
fn helm_refuses_what_we_refuse() {
    for field in [
        "ipv4.blokSize=3",
        "dataplane=ebpf",
        "mtu=x",
        "node.maxUnavailable=-1",
    ] {
        let mut helm = helm();
        helm.args(["template", "tortie", "--set", field])
            .arg(deploy("helm/tortie"));
        let ran = helm.output().unwrap();
        assert!(!ran.status.success(), "{field}");
        assert!(tortie_install::Values::new([], [field]).is_err(), "{field}");
    }
}

#[test]
fn helm_finds_nothing_to_object_to() {
    let said = output(helm().args(["lint", "--strict"]).arg(deploy("helm/tortie")));
    assert!(
        said.contains("1 chart(s) linted, 0 chart(s) failed"),
        "{said}"
    );
}

/// Without settings of the user's.
fn helm() -> Command {
    let mut helm = Command::new("helm");
    let nowhere = std::env::temp_dir().join("no-helm");
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        helm.env(variable, &nowhere);
    }
    helm.env_remove("KUBECONFIG");
    helm
}
