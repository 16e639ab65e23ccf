//! A node's start on a real datastore.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tempfile::TempDir;
use tortie_agent::startup::autodetect::Interface;
use tortie_agent::startup::tunnel::{self, Outcome, Tunnel};
use tortie_agent::startup::{
    Error, Failure, KubernetesFacts, Registered, Registrar, Settings, follow, register,
    register_again,
};
use tortie_api::cluster_information::ClusterInformationSpec;
use tortie_api::felix_configuration::FelixConfigurationSpec;
use tortie_api::ip_pool::{IpPoolSpec, VxlanMode};
use tortie_api::node::NodeSpec;
use tortie_api::{ClusterInformation, IpPool, Kind, Node, Resource};
use tortie_client::Client;
use tortie_ipam::Ipam;
use tortie_store::embedded::EmbeddedStore;
use tortie_store::{Key, Precondition, Query};

struct Setting {
    client: Client,
    _folder: TempDir,
}

impl Setting {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = EmbeddedStore::open(folder.path().join("store")).unwrap();
        Self {
            client: Client::new(Arc::new(store)),
            _folder: folder,
        }
    }

    async fn start(&self, variables: &[(&str, &str)]) -> Result<Registered, Error> {
        let settings = settings(variables);
        register(&self.client, &settings, &interfaces(), None).await
    }

    async fn names(&self, kind: Kind) -> Vec<String> {
        let list = self.client.list(&Query::all(kind)).await.unwrap();
        let names = list.items.iter().map(|item| item.metadata().name.clone());
        names.collect()
    }

    async fn node(&self, name: &str) -> Node {
        match self
            .client
            .get(&Key::global(Kind::Node, name))
            .await
            .unwrap()
        {
            Resource::Node(node) => *node,
            other => panic!("{other:?}"),
        }
    }

    async fn tunnels(&self, node: &str) -> BTreeMap<&'static str, Outcome> {
        let ipam = Ipam::new(Arc::clone(self.client.store()));
        let outcomes = tunnel::ensure(&self.client, &ipam, node).await.unwrap();
        outcomes
            .into_iter()
            .map(|(tunnel, outcome)| (tunnel.name(), outcome))
            .collect()
    }

    async fn make_pool(&self, name: &str, cidr: &str, vxlan: VxlanMode) {
        let spec = IpPoolSpec {
            cidr: cidr.to_owned(),
            vxlan_mode: Some(vxlan),
            ..IpPoolSpec::default()
        };
        self.client
            .create(IpPool::new("", name, spec).into())
            .await
            .unwrap();
    }
}

fn settings(variables: &[(&str, &str)]) -> Settings {
    let mut all: BTreeMap<String, String> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    all.entry("CALICO_NODENAME_FILE".to_owned())
        .or_insert("/nonexistent/nodename".to_owned());
    Settings::from_environment(&all, "node-1").unwrap()
}

fn interfaces() -> Vec<Interface> {
    vec![Interface {
        name: "eth0".to_owned(),
        addresses: vec![
            "192.0.2.1/24".parse().unwrap(),
            "2001:db8::1/64".parse().unwrap(),
        ],
    }]
}

#[tokio::test]
async fn the_first_node_makes_what_a_cluster_begins_with() {
    let setting = Setting::new();
    let registered = setting
        .start(&[("IP6", "autodetect"), ("AS", "64600")])
        .await
        .unwrap();
    let bgp = registered.node.spec.bgp.unwrap();
    assert_eq!(
        (bgp.ipv4_address.as_str(), bgp.ipv6_address.as_str()),
        ("192.0.2.1/24", "2001:db8::1/64")
    );
    assert_eq!(bgp.as_number.unwrap().0, 64600);
    assert_eq!(registered.node.spec.interfaces[0].name, "eth0");
    assert_eq!(
        registered.pools,
        ["default-ipv4-ippool", "default-ipv6-ippool"]
    );
    assert_eq!(setting.names(Kind::ClusterInformation).await, ["default"]);
    assert_eq!(
        setting.names(Kind::FelixConfiguration).await,
        ["default", "node.node-1"]
    );
    assert_eq!(setting.names(Kind::BgpConfiguration).await, ["default"]);
    assert_eq!(setting.names(Kind::IpamConfiguration).await, ["default"]);

    let again = setting.start(&[]).await.unwrap();
    assert_eq!(again.pools, [] as [&str; 0]);
    assert_eq!(
        again.node.metadata.resource_version,
        registered.node.metadata.resource_version
    );
}

#[tokio::test]
async fn a_nodes_own_configuration_overrides_nothing_but_what_its_start_sets() {
    let setting = Setting::new();
    setting.start(&[]).await.unwrap();
    let key = Key::global(Kind::FelixConfiguration, "node.node-1");
    let Resource::FelixConfiguration(own) = setting.client.get(&key).await.unwrap() else {
        panic!("it is something else");
    };
    let expected = FelixConfigurationSpec {
        default_endpoint_to_host_action: "Return".to_owned(),
        ..FelixConfigurationSpec::default()
    };
    assert_eq!(own.spec, expected);
}

#[tokio::test]
async fn what_somebody_wrote_without_identity_is_completed() {
    let setting = Setting::new();
    let bare = ClusterInformation::new("", "default", ClusterInformationSpec::default());
    let store = setting.client.store();
    store.create(bare.into()).await.unwrap();
    setting.start(&[]).await.unwrap();
    let key = Key::global(Kind::ClusterInformation, "default");
    let Resource::ClusterInformation(information) = setting.client.get(&key).await.unwrap() else {
        panic!("it is something else");
    };
    assert_eq!(information.spec.datastore_ready, Some(true));
    assert!(!information.metadata.uid.is_empty());
}

#[tokio::test]
async fn a_cluster_keeps_the_pools_that_it_has() {
    let setting = Setting::new();
    setting
        .make_pool("mine", "10.65.0.0/16", VxlanMode::Never)
        .await;
    let registered = setting.start(&[]).await.unwrap();
    assert_eq!(registered.pools, ["default-ipv6-ippool"]);
    let setting = Setting::new();
    let registered = setting
        .start(&[("NO_DEFAULT_POOLS", "true")])
        .await
        .unwrap();
    assert_eq!(registered.pools, [] as [&str; 0]);
    let setting = Setting::new();
    let facts = KubernetesFacts {
        pod_networks: vec!["10.244.0.0/16".parse().unwrap()],
    };
    let settings = settings(&[("CALICO_IPV6POOL_CIDR", "none")]);
    register(&setting.client, &settings, &interfaces(), Some(&facts))
        .await
        .unwrap();
    let list = setting
        .client
        .list(&Query::all(Kind::IpPool))
        .await
        .unwrap();
    let [Resource::IpPool(pool)] = &list.items[..] else {
        panic!("{:?}", list.items);
    };
    assert_eq!(pool.spec.cidr, "10.244.0.0/16");
}

#[tokio::test]
async fn an_address_of_another_node_is_refused() {
    let setting = Setting::new();
    setting.start(&[("NODENAME", "node-1")]).await.unwrap();
    let refused = setting
        .start(&[("NODENAME", "node-2")])
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("node-1") && refused.contains("192.0.2.1"),
        "{refused}"
    );
    assert_eq!(setting.names(Kind::Node).await, ["node-1"]);
    let anyway = [("NODENAME", "node-2"), ("DISABLE_NODE_IP_CHECK", "true")];
    setting.start(&anyway).await.unwrap();
}

#[tokio::test]
async fn an_address_that_is_gone_is_forgotten_and_one_that_was_given_stays() {
    let setting = Setting::new();
    setting.start(&[("IP", "192.0.2.1")]).await.unwrap();
    assert_eq!(
        setting.node("node-1").await.spec.bgp.unwrap().ipv4_address,
        "192.0.2.1/24"
    );
    // Without being asked to look, what is known is right.
    let kept = [("IP_AUTODETECTION_METHOD", "interface=wlan0")];
    setting.start(&kept).await.unwrap();
    let looking = [
        ("IP", "autodetect"),
        ("IP_AUTODETECTION_METHOD", "interface=wlan0"),
    ];
    let refused = setting.start(&looking).await.unwrap_err().to_string();
    assert!(
        refused.contains("interface=wlan0") && refused.contains("set IP"),
        "{refused}"
    );
    assert_eq!(
        setting
            .node("node-1")
            .await
            .spec
            .bgp
            .unwrap_or_default()
            .ipv4_address,
        ""
    );
    let refused = setting
        .start(&[("IP", "none")])
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("no address"), "{refused}");
    let without = [("IP", "none"), ("CALICO_NETWORKING_BACKEND", "none")];
    setting.start(&without).await.unwrap();
}

#[tokio::test]
async fn tunnels_have_addresses_as_long_as_pools_ask_for_them() {
    let setting = Setting::new();
    setting
        .start(&[("NO_DEFAULT_POOLS", "true")])
        .await
        .unwrap();
    let none = setting.tunnels("node-1").await;
    assert!(
        none.values().all(|outcome| *outcome == Outcome::NotNeeded),
        "{none:?}"
    );

    setting
        .make_pool("vxlan", "10.65.0.0/16", VxlanMode::Always)
        .await;
    setting
        .make_pool("vxlan6", "fd65::/64", VxlanMode::CrossSubnet)
        .await;
    let given = setting.tunnels("node-1").await;
    let Outcome::Assigned(address) = given["VXLAN"] else {
        panic!("{given:?}");
    };
    assert!(
        matches!(given["IPv6 VXLAN"], Outcome::Assigned(_)),
        "{given:?}"
    );
    assert_eq!(
        setting.node("node-1").await.spec.ipv4_vxlan_tunnel_addr,
        address.to_string()
    );
    assert_eq!(
        setting.tunnels("node-1").await["VXLAN"],
        Outcome::Kept(address)
    );

    // Address management lost it: it is taken again.
    let ipam = Ipam::new(Arc::clone(setting.client.store()));
    ipam.release_by_handle(&Tunnel::Vxlan.handle("node-1"))
        .await
        .unwrap();
    assert_eq!(
        setting.tunnels("node-1").await["VXLAN"],
        Outcome::Kept(address)
    );
    assert_eq!(
        ipam.assignment(address).await.unwrap().handle,
        Some(Tunnel::Vxlan.handle("node-1"))
    );

    let key = Key::global(Kind::IpPool, "vxlan");
    setting
        .client
        .delete(&key, &Precondition::default())
        .await
        .unwrap();
    assert_eq!(
        setting.tunnels("node-1").await["VXLAN"],
        Outcome::Released(address)
    );
    assert_eq!(setting.node("node-1").await.spec.ipv4_vxlan_tunnel_addr, "");
    assert!(ipam.assignment(address).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn tunnels_follow_the_pools() {
    let setting = Setting::new();
    setting
        .start(&[("NO_DEFAULT_POOLS", "true")])
        .await
        .unwrap();
    let ipam = Ipam::new(Arc::clone(setting.client.store()));
    let address = async |wanted: bool| {
        loop {
            let node = setting.node("node-1").await;
            if node.spec.ipv4_vxlan_tunnel_addr.is_empty() != wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let story = async {
        setting
            .make_pool("vxlan", "10.65.0.0/16", VxlanMode::Always)
            .await;
        address(true).await;
        let key = Key::global(Kind::IpPool, "vxlan");
        setting
            .client
            .delete(&key, &Precondition::default())
            .await
            .unwrap();
        address(false).await;
    };
    tokio::select! {
        never = follow(&setting.client, &ipam, "node-1", None) => never,
        told = tokio::time::timeout(Duration::from_secs(20), story) => told.unwrap(),
    }
}

/// Registers with the interfaces of the tests, in a datastore where others may have to make the node.
struct Local<'a> {
    client: &'a Client,
    variables: &'a [(&'a str, &'a str)],
    makes_node: bool,
    was_registered: bool,
}

#[async_trait]
impl Registrar for Local<'_> {
    fn makes_node(&self) -> bool {
        self.makes_node
    }

    fn was_registered(&self) -> bool {
        self.was_registered
    }

    async fn register(&self, last: Option<&NodeSpec>) -> Result<(), Failure> {
        let settings = settings(self.variables);
        register_again(self.client, &settings, &interfaces(), last, false).await?;
        Ok(())
    }
}

impl Setting {
    /// Runs a story while a registrar keeps the node's place.
    async fn kept(&self, registrar: &dyn Registrar, story: impl Future<Output = ()>) {
        let ipam = Ipam::new(Arc::clone(self.client.store()));
        tokio::select! {
            never = follow(&self.client, &ipam, "node-1", Some(registrar)) => never,
            told = tokio::time::timeout(Duration::from_mins(1), story) => told.unwrap(),
        }
    }

    /// Waits until the node has, or has not, addresses and a tunnel.
    async fn await_place(&self, wanted: [&str; 2], has_tunnel: bool) -> Node {
        loop {
            let key = Key::global(Kind::Node, "node-1");
            if let Ok(Resource::Node(node)) = self.client.get(&key).await {
                let bgp = node.spec.bgp.clone().unwrap_or_default();
                if [bgp.ipv4_address, bgp.ipv6_address] == wanted
                    && node.spec.ipv4_vxlan_tunnel_addr.is_empty() != has_tunnel
                {
                    return *node;
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Deletes the node's resource alone, as it goes with the node of another system.
    async fn lose_node(&self) {
        let key = Key::global(Kind::Node, "node-1");
        let store = self.client.store();
        store.delete(&key, &Precondition::default()).await.unwrap();
    }
}

const BOTH: [&str; 2] = ["192.0.2.1/24", "2001:db8::1/64"];

#[tokio::test]
async fn a_node_that_is_deleted_comes_back_with_what_it_had() {
    let setting = Setting::new();
    let begun = [
        ("IP6", "autodetect"),
        ("AS", "64600"),
        ("CALICO_K8S_NODE_REF", "kube-1"),
    ];
    let begun = [&begun[..], &[("NO_DEFAULT_POOLS", "true")]].concat();
    setting.start(&begun).await.unwrap();
    setting
        .make_pool("vxlan", "10.65.0.0/16", VxlanMode::Always)
        .await;
    // The agent's own variables need not be those of the start.
    let registrar = Local {
        client: &setting.client,
        variables: &[],
        makes_node: true,
        was_registered: false,
    };
    let story = async {
        setting.await_place(BOTH, true).await;
        for _ in 0..2 {
            setting.lose_node().await;
            let node = setting.await_place(BOTH, true).await;
            assert_eq!(node.spec.bgp.unwrap().as_number.unwrap().0, 64600);
            assert_eq!(node.spec.orch_refs[0].node_name, "kube-1");
        }
        // Somebody deletes it with all that belongs to it.
        let key = Key::global(Kind::Node, "node-1");
        setting
            .client
            .delete(&key, &Precondition::default())
            .await
            .unwrap();
        setting.await_place(BOTH, true).await;
        let configurations = setting.names(Kind::FelixConfiguration).await;
        assert_eq!(configurations, ["default", "node.node-1"]);
    };
    setting.kept(&registrar, story).await;
}

#[tokio::test]
async fn a_node_that_others_make_gets_its_addresses_once_it_is_there() {
    let setting = Setting::new();
    let begun = [("IP6", "autodetect"), ("NO_DEFAULT_POOLS", "true")];
    setting.start(&begun).await.unwrap();
    setting
        .make_pool("vxlan", "10.65.0.0/16", VxlanMode::Always)
        .await;
    let registrar = Local {
        client: &setting.client,
        variables: &[],
        makes_node: false,
        was_registered: false,
    };
    let story = async {
        // Who gives the tunnel its address has seen the node.
        setting.await_place(BOTH, true).await;
        setting.lose_node().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(setting.names(Kind::Node).await, [] as [&str; 0]);
        let bare = Node::new("", "node-1", NodeSpec::default());
        setting.client.create(bare.into()).await.unwrap();
        setting.await_place(BOTH, true).await;
    };
    setting.kept(&registrar, story).await;
}

#[tokio::test]
async fn only_a_node_that_had_a_place_gets_one() {
    for was_registered in [false, true] {
        let setting = Setting::new();
        let bare = Node::new("", "node-1", NodeSpec::default());
        setting.client.create(bare.into()).await.unwrap();
        let registrar = Local {
            client: &setting.client,
            variables: &[],
            makes_node: true,
            was_registered,
        };
        let story = async {
            if was_registered {
                setting.await_place([BOTH[0], ""], false).await;
                return;
            }
            // A node for policy alone is left as it is, and stays away when it is deleted.
            tokio::time::sleep(Duration::from_millis(300)).await;
            setting.await_place(["", ""], false).await;
        };
        setting.kept(&registrar, story).await;
    }
}
