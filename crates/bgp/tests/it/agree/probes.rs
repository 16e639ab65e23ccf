//! Routes that make a difference to filters: everything that their texts name, and what is beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_bgp::Family;
use tortie_testkit::Random;

use super::lexer::{Token, tokens};
use super::run::Route;

/// How many routes are made of each network.
const VARIANTS: usize = 40;

const SOURCES: [&str; 4] = ["RTS_BGP", "RTS_STATIC", "RTS_INHERIT", "RTS_DEVICE"];

pub(crate) fn routes(texts: &[&str], family: Family) -> Vec<Route> {
    let tokens: Vec<Token> = texts.iter().flat_map(|text| tokens(text)).collect();
    let networks = networks(&tokens, family);
    let named = Named::of(&tokens);
    let mut random = Random::new(18);
    let mut routes = Vec::new();
    for net in networks {
        for _ in 0..VARIANTS {
            routes.push(named.route(net, &mut random));
        }
    }
    routes
}

/// Those that are named, and one around, one within and one address of each.
fn networks(tokens: &[Token], family: Family) -> BTreeSet<IpNet> {
    let own = match family {
        Family::V4 => ["203.0.113.0/24", "0.0.0.0/0"],
        Family::V6 => ["2001:db8:ffff::/64", "::/0"],
    };
    let mut networks: BTreeSet<IpNet> = own.map(|text| text.parse().unwrap()).into();
    for token in tokens {
        let Token::Network(network) = token else {
            continue;
        };
        if Family::of_network(*network) != family {
            continue;
        }
        let network = network.trunc();
        networks.insert(network);
        networks.extend(network.supernet());
        networks.insert(IpNet::from(network.addr()));
        let longer = (network.prefix_len() + 2).min(network.max_prefix_len());
        networks.insert(IpNet::new(network.broadcast(), longer).unwrap().trunc());
    }
    networks
}

/// What the texts name besides networks.
struct Named {
    numbers: Vec<u32>,
    interfaces: Vec<String>,
    addresses: Vec<IpAddr>,
    communities: Vec<Vec<u32>>,
    paths: Vec<Vec<u32>>,
}

impl Named {
    fn of(tokens: &[Token]) -> Self {
        let mut numbers = BTreeSet::from([100, 512, 1_024, 2_147_483_647]);
        let mut interfaces: BTreeSet<String> = [
            "eth0",
            "cali1",
            "x.cali",
            "vxlan.calico",
            "bpfin.cali",
            "tunl0",
        ]
        .map(str::to_owned)
        .into();
        let mut addresses = BTreeSet::new();
        for token in tokens {
            match token {
                Token::Number(number) => {
                    numbers.extend([*number, number.saturating_add(1), number.saturating_sub(1)]);
                }
                Token::Text(text) => {
                    interfaces.insert(text.replace('*', "1").replace('?', "2"));
                }
                Token::Address(address) => {
                    addresses.insert(*address);
                }
                Token::Network(network) => {
                    addresses.insert(network.addr());
                }
                Token::Word(_) | Token::Mark(_) => {}
            }
        }
        Self {
            numbers: numbers.into_iter().collect(),
            interfaces: interfaces.into_iter().collect(),
            addresses: addresses.into_iter().collect(),
            communities: tuples(tokens, "(", ")"),
            paths: tuples(tokens, "[=", "*"),
        }
    }

    fn route(&self, net: IpNet, random: &mut Random) -> Route {
        let source = *pick(&SOURCES, random);
        let is_learnt = source == "RTS_BGP";
        let mut numbers = BTreeMap::from([("preference".to_owned(), 100)]);
        // Kernels say a metric, and BGP a preference.
        for (name, chance) in [("krt_metric", !is_learnt), ("bgp_local_pref", is_learnt)] {
            if random.once_in(8) != chance {
                numbers.insert(name.to_owned(), *pick(&self.numbers, random));
            }
        }
        let some = |lists: &[Vec<u32>], random: &mut Random| match lists {
            [] => Vec::new(),
            lists => pick(lists, random).clone(),
        };
        let mut communities = BTreeSet::new();
        if is_learnt && random.once_in(2) {
            communities.extend([some(&self.communities, random)]);
        }
        let mut path = Vec::new();
        if is_learnt {
            path = some(&self.paths, random);
            path.push(64_999);
        }
        Route {
            net,
            source,
            interface: random
                .once_in(2)
                .then(|| pick(&self.interfaces, random).clone()),
            next_hop: (is_learnt && !self.addresses.is_empty())
                .then(|| *pick(&self.addresses, random)),
            numbers,
            path,
            communities,
            tunnel: String::new(),
        }
    }
}

fn pick<'a, T>(from: &'a [T], random: &mut Random) -> &'a T {
    let at = random.below(from.len() as u64);
    &from[usize::try_from(at).unwrap()]
}

/// The numbers between these marks.
fn tuples(tokens: &[Token], from: &str, to: &str) -> Vec<Vec<u32>> {
    let mut found: BTreeSet<Vec<u32>> = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        if !matches!(token, Token::Mark(mark) if *mark == from) {
            continue;
        }
        let mut numbers = Vec::new();
        for token in &tokens[at + 1..] {
            match token {
                Token::Number(number) => numbers.push(*number),
                Token::Mark(",") => {}
                Token::Mark(mark) if *mark == to => {
                    found.insert(std::mem::take(&mut numbers));
                    break;
                }
                _ => break,
            }
        }
    }
    found
        .into_iter()
        .filter(|numbers| !numbers.is_empty())
        .collect()
}
