//! Pools, blocks and nodes pass through the same engine; details are tested beside that part.

use tortie_engine::Update;
use tortie_engine::input::{Block, EncapMode, IpPool, Node};

use crate::states::build::{LOCAL, Object, REMOTE, net, pod, policy};
use crate::states::list::{check, world};

fn vxlan_pool(range: &str) -> Object {
    let pool = IpPool {
        vxlan: EncapMode::Always,
        ..IpPool::default()
    };
    Object(Update::IpPool(net(range), Some(pool)))
}

fn block_of(node: &str, range: &str) -> Object {
    let block = Block {
        node: Some(node.to_owned()),
        ..Block::default()
    };
    Object(Update::Block(net(range), Some(block)))
}

fn node(name: &str, address: &str, tunnel: &str) -> Object {
    let node = Node {
        bgp_ipv4: Some(net(address)),
        vxlan_tunnel_v4: Some(tunnel.parse().expect("an address")),
        vxlan_mac_v4: "66:00:00:00:00:01".to_owned(),
        ..Node::default()
    };
    Object(Update::Node(name.to_owned(), Some(Box::new(node))))
}

#[test]
fn a_pool_with_vxlan_makes_routes_and_ends_of_tunnels() {
    let nodes = || {
        [
            node(LOCAL, "192.168.0.1/24", "10.1.0.0"),
            node(REMOTE, "192.168.0.2/24", "10.2.0.0"),
        ]
    };
    check([
        world([policy("p"), pod("a").ip("10.1.0.7")]).and(nodes()).gives(
            r#"policy gnp/p
             pod a 10.1.0.7 | default=deny both gnp/p
             node here: {"hostname":"here","ipv4Addr":"192.168.0.1/24"}
             node there: {"hostname":"there","ipv4Addr":"192.168.0.2/24"}"#,
        ),
        world([policy("p"), pod("a").ip("10.1.0.7"), vxlan_pool("10.0.0.0/8")])
            .and([block_of(REMOTE, "10.2.0.0/26")])
            .and(nodes())
            .gives(
                r#"policy gnp/p
                 pod a 10.1.0.7 | default=deny both gnp/p
                 node here: {"hostname":"here","ipv4Addr":"192.168.0.1/24"}
                 node there: {"hostname":"there","ipv4Addr":"192.168.0.2/24"}
                 pool 10.0.0.0-8: {"cidr":"10.0.0.0/8","vxlanMode":"always"}
                 tunnels : {"ipipEnabled":false,"vxlanEnabled":true,"vxlanEnabledV6":false,"noEncapEnabled":false}
                 vtep here: {"node":"here","mac":"66:00:00:00:00:01","ipv4Addr":"10.1.0.0","parentDeviceIp":"192.168.0.1"}
                 vtep there: {"node":"there","mac":"66:00:00:00:00:01","ipv4Addr":"10.2.0.0","parentDeviceIp":"192.168.0.2"}
                 route 10.0.0.0/8: {"dst":"10.0.0.0/8","ipPoolType":"VXLAN"}
                 route 10.1.0.0/32: {"dst":"10.1.0.0/32","types":"LOCAL_TUNNEL","ipPoolType":"VXLAN","dstNodeName":"here","dstNodeIp":"192.168.0.1","tunnelType":{"vxlan":true}}
                 route 10.1.0.7/32: {"dst":"10.1.0.7/32","types":"LOCAL_WORKLOAD","ipPoolType":"VXLAN","dstNodeName":"here","dstNodeIp":"192.168.0.1","localWorkload":true}
                 route 10.2.0.0/26: {"dst":"10.2.0.0/26","types":"REMOTE_WORKLOAD","ipPoolType":"VXLAN","dstNodeName":"there","dstNodeIp":"192.168.0.2"}
                 route 10.2.0.0/32: {"dst":"10.2.0.0/32","types":"REMOTE_TUNNEL","ipPoolType":"VXLAN","dstNodeName":"there","dstNodeIp":"192.168.0.2","tunnelType":{"vxlan":true}}
                 route 192.168.0.1/32: {"dst":"192.168.0.1/32","types":"LOCAL_HOST","dstNodeName":"here","dstNodeIp":"192.168.0.1"}
                 route 192.168.0.2/32: {"dst":"192.168.0.2/32","types":"REMOTE_HOST","dstNodeName":"there","dstNodeIp":"192.168.0.2"}"#,
            ),
    ]);
}
