//! `show interfaces`.

use ipnet::IpNet;

use crate::bird::reply::Reply;

/// An interface as BIRD sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub index: u32,
    pub is_up: bool,
    pub mtu: Option<u32>,
    pub addresses: Vec<IpNet>,
}

const HEAD: u16 = 1001;

const ADDRESS: u16 = 1003;

const FLAGS: u16 = 1004;

/// All interfaces of an answer.
pub fn interfaces(reply: &Reply) -> Vec<Interface> {
    let mut interfaces: Vec<Interface> = Vec::new();
    for line in &reply.lines {
        let text = line.text.trim();
        if line.code == HEAD {
            interfaces.extend(head(text));
            continue;
        }
        let Some(interface) = interfaces.last_mut() else {
            continue;
        };
        let mut words = text.split(' ');
        match line.code {
            FLAGS => {
                let mut mtu = words.filter_map(|word| word.strip_prefix("MTU="));
                interface.mtu = mtu.next().and_then(|mtu| mtu.parse().ok());
            }
            ADDRESS => {
                let address = words.next().and_then(|word| word.parse::<IpNet>().ok());
                interface.addresses.extend(address);
            }
            _ => {}
        }
    }
    interfaces
}

/// `eth0 up (index=2)`, and for a member of a bridge `eth0 up (index=2 master=br0)`.
fn head(text: &str) -> Option<Interface> {
    let (name, rest) = text.split_once(' ')?;
    let index = rest.split_once("index=")?.1;
    let digits = index.split(|c: char| !c.is_ascii_digit()).next()?;
    Some(Interface {
        name: name.to_owned(),
        index: digits.parse().ok()?,
        is_up: rest.starts_with("up"),
        ..Interface::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::recorded::{recorded, reply};
    use super::*;

    #[track_caller]
    fn check(text: &str, addresses: &[&str]) {
        let found = interfaces(&reply(text));
        assert_eq!(found.len(), 2);
        let eth0 = &found[1];
        assert_eq!(
            (eth0.name.as_str(), eth0.index, eth0.is_up),
            ("eth0", 2, true)
        );
        assert_eq!(eth0.mtu, Some(1500));
        let shown: Vec<String> = eth0.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(shown[..addresses.len()], *addresses);
    }

    #[test]
    fn both_versions_tell_of_their_interfaces() {
        check(
            recorded!("2.0.12/interfaces"),
            &["172.20.0.1/24", "fd20::1/64"],
        );
        check(recorded!("1.6.8/interfaces"), &["172.20.0.1/24"]);
    }

    #[test]
    fn what_is_missing_is_left_out() {
        let found = interfaces(&reply(
            "1003-1.2.3.4/8\n1001-a\n1001-b down (index=x)\n0000 \n",
        ));
        assert_eq!(found, []);
    }
}
