//! The recipes of `examples/network-policies`: what they say about each connection is what packets see.

mod world;

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use serde_json::{Value, json};
use tortie_api::Resource;
use tortie_testkit::net::{Packet, Ports};

use crate::e2e::flow::{Flow, Machine};
use crate::e2e::objects::resource;
use crate::e2e::planes::Plane;
use crate::e2e::setting::Setting;

on_both_data_planes!(packets_meet_the_expected_fate_of_every_recipe);

/// A recipe, and what it is expected to lead to.
struct Recipe {
    name: String,
    policies: Vec<Resource>,
    connections: Vec<Connection>,
    /// Whether it names addresses, which are all of IPv4, so that it says nothing about IPv6.
    is_for_ipv4: bool,
}

/// A line of the expectations.
struct Connection {
    from: String,
    to: String,
    packet: Packet,
    is_allowed: bool,
}

fn packets_meet_the_expected_fate_of_every_recipe(plane: Plane) {
    let recipes = recipes();
    assert!(recipes.len() >= 18, "{} recipes", recipes.len());
    let mut setting = Setting::new();
    let mut cast = pods(&mut setting);
    add_strangers(&mut setting, &mut cast, &recipes);
    let only_ipv4: BTreeMap<String, Machine> = cast
        .iter()
        .map(|(name, machine)| (name.clone(), machine.with_address(machine.ipv4())))
        .collect();
    let _agent = setting.start_agent(plane, &[]);
    for recipe in &recipes {
        let cast = if recipe.is_for_ipv4 {
            &only_ipv4
        } else {
            &cast
        };
        let connections = recipe.connections.iter();
        let expected: Vec<(Flow<'_>, bool)> = connections
            .map(|connection| (connection.flow(cast), connection.is_allowed))
            .collect();
        // Every connection changes once on the way: so an expectation cannot be met before the recipe is in force.
        // Not echo requests: to the kernel they are all of one connection, which goes on once it was allowed.
        let fresh = expected.iter().filter(|(flow, _)| !flow.is_icmp());
        let denied: Vec<_> = fresh.map(|(flow, _)| (*flow, false)).collect();
        setting.put(deny_all());
        setting.await_flows(&denied);
        for policy in &recipe.policies {
            setting.put(policy.clone());
        }
        setting.delete(&deny_all());
        tracing::info!("{}", recipe.name);
        setting.await_flows(&expected);
        setting.check_flows(&expected);
        for policy in &recipe.policies {
            setting.delete(policy);
        }
    }
    let all = recipes.iter().flat_map(|recipe| &recipe.connections);
    let all: Vec<_> = all
        .map(|connection| (connection.flow(&cast), true))
        .collect();
    setting.await_flows(&all);
}

/// Comes before all others and denies what pods receive and send.
fn deny_all() -> Resource {
    let deny = json!([{"action": "Deny"}]);
    resource(
        tortie_api::Kind::GlobalNetworkPolicy,
        "",
        "kube-admin.deny-all",
        &json!({
            "tier": "kube-admin",
            "order": -1,
            "selector": "all()",
            "types": ["Ingress", "Egress"],
            "ingress": deny,
            "egress": deny,
        }),
    )
}

/// The pods of the world, by `namespace/name`.
fn pods(setting: &mut Setting) -> BTreeMap<String, Machine> {
    let mut cast = BTreeMap::new();
    for document in documents("world.yaml") {
        if document["kind"] != "Pod" {
            for profile in world::profiles(&document) {
                setting.put(profile);
            }
            continue;
        }
        let (name, endpoint) = world::endpoint(&document);
        let addresses: Vec<IpAddr> = endpoint
            .spec
            .ip_networks
            .iter()
            .map(|network| network.parse::<IpNet>().unwrap().addr())
            .collect();
        let interface = &endpoint.spec.interface_name;
        let pod = setting.node.add_pod(interface, &addresses).unwrap();
        cast.insert(name.clone(), setting.machine_of(&name, &pod));
        setting.put(endpoint.into());
    }
    cast
}

/// All addresses of the recipes that are not pods', on one machine.
fn add_strangers(setting: &mut Setting, cast: &mut BTreeMap<String, Machine>, recipes: &[Recipe]) {
    let connections = recipes.iter().flat_map(|recipe| &recipe.connections);
    let names: Vec<&String> = connections.flat_map(|c| [&c.from, &c.to]).collect();
    let (outside, _) = setting.add_external("outside", 99);
    for name in names {
        if cast.contains_key(name) {
            continue;
        }
        if name.starts_with("host/") {
            // Another node is a machine like any.
            cast.insert(name.clone(), outside.clone());
            continue;
        }
        let address: IpAddr = name.parse().unwrap();
        let owner = cast.values().find(|pod| pod.addresses.contains(&address));
        let machine = if let Some(pod) = owner {
            setting.machine(name, &pod.namespace.clone(), &[address])
        } else {
            let add = format!("addr add {address}/32 dev eth0");
            let mut command = std::process::Command::new("ip");
            command.args(add.split(' '));
            let status = outside.namespace.run(|| command.status()).unwrap().unwrap();
            assert!(status.success(), "{add}");
            setting.route(address.into(), "outside");
            setting.machine(name, &outside.namespace, &[address])
        };
        cast.insert(name.clone(), machine);
    }
}

/// The documents of a file.
fn documents(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder().join(file)).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/network-policies")
}

fn recipes() -> Vec<Recipe> {
    let files = fs::read_dir(folder()).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut recipes: Vec<Recipe> = files
        .filter_map(|file| {
            let name = file.strip_suffix(".expected.jsonl")?;
            let lines = fs::read_to_string(folder().join(&file)).unwrap();
            let policies = documents(&format!("{name}.yaml"));
            Some(Recipe {
                name: name.to_owned(),
                is_for_ipv4: json!(policies).to_string().contains("ipBlock"),
                policies: policies.iter().map(world::policy).collect(),
                connections: lines.lines().map(Connection::read).collect(),
            })
        })
        .collect();
    recipes.sort_by(|one, other| one.name.cmp(&other.name));
    recipes
}

impl Connection {
    fn read(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap();
        let text = |field: &str| value[field].as_str().unwrap().to_owned();
        let port = || Ports::to(u16::try_from(value["port"].as_u64().unwrap()).unwrap());
        Self {
            from: text("from"),
            to: text("to"),
            packet: match text("protocol").as_str() {
                "TCP" => Packet::Tcp(port()),
                "UDP" => Packet::Udp(port()),
                "SCTP" => Packet::Sctp(port()),
                "ICMP" => Packet::Icmp {
                    kind: u8::try_from(value["icmpType"].as_u64().unwrap()).unwrap(),
                    code: 0,
                },
                other => panic!("{other}: {line}"),
            },
            is_allowed: match text("expected").as_str() {
                "Allow" => true,
                "Deny" => false,
                other => panic!("{other}: {line}"),
            },
        }
    }

    fn flow<'a>(&self, cast: &'a BTreeMap<String, Machine>) -> Flow<'a> {
        Flow {
            from: &cast[&self.from],
            to: &cast[&self.to],
            packet: self.packet,
        }
    }
}
