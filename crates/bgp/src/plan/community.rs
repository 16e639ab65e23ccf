//! BGP communities, and the networks whose routes get them.

use std::fmt;
use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::kinds::bgp_configuration::BgpConfigurationSpec;

use super::{FamilyPlan, Origin, Problems, shown};
use crate::inputs;
use crate::{Family, Inputs, PerFamily};

/// What a route is marked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Community {
    /// Of RFC 1997.
    Standard(u16, u16),
    /// Of RFC 8092.
    Large(u32, u32, u32),
}

/// Communities that routes of a network get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommunityRule {
    /// The network, with all in it.
    pub network: IpNet,
    /// In the order of their text.
    pub communities: Vec<Community>,
    /// Who asks for them.
    pub origin: Origin,
}

impl Community {
    /// What would be right.
    pub(super) const EXPECTED: &'static str =
        "a community: two numbers up to 65535, or three up to 4294967295, joined by `:`";

    /// Reads `a:b` or `a:b:c`.
    pub fn parse(text: &str) -> Option<Self> {
        let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
        let parts: Vec<&str> = text.split(':').filter(is_number).collect();
        match parts[..] {
            [a, b] if text.matches(':').count() == 1 => {
                Some(Self::Standard(a.parse().ok()?, b.parse().ok()?))
            }
            [a, b, c] if text.matches(':').count() == 2 => Some(Self::Large(
                a.parse().ok()?,
                b.parse().ok()?,
                c.parse().ok()?,
            )),
            _ => None,
        }
    }
}

impl fmt::Display for Community {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Standard(a, b) => write!(f, "{a}:{b}"),
            Self::Large(a, b, c) => write!(f, "{a}:{b}:{c}"),
        }
    }
}

/// What a node says of its own stands in place of what holds for all.
pub(super) fn plan(inputs: &Inputs, families: &mut PerFamily<FamilyPlan>, problems: &mut Problems) {
    let own = &inputs.node_configuration;
    let (name, spec): (Arc<str>, _) = if own.prefix_advertisements.is_empty() {
        ("default".into(), &inputs.configuration)
    } else {
        (format!("node.{}", inputs.identity.node).into(), own)
    };
    let origin = |field: String| Origin::new("BGPConfiguration", Arc::clone(&name), field);
    for (index, advertisement) in spec.prefix_advertisements.iter().enumerate() {
        let field = format!("spec.prefixAdvertisements[{index}]");
        let Some(network) = inputs::network(&advertisement.cidr) else {
            problems.push(origin(format!("{field}.cidr")).problem(format!(
                "{} is not a network such as 10.0.0.0/16; its routes get no communities",
                shown(&advertisement.cidr)
            )));
            continue;
        };
        let mut communities = Vec::new();
        for (index, text) in advertisement.communities.iter().enumerate() {
            match resolve(spec, text) {
                Ok(community) => communities.push(community),
                Err(reason) => {
                    let field = format!("{field}.communities[{index}]");
                    problems.push(origin(field).problem(format!("{reason}; it is left out")));
                }
            }
        }
        communities.sort_by_cached_key(Community::to_string);
        communities.dedup();
        if communities.is_empty() {
            continue;
        }
        let family = families.get_mut(Family::of_network(network));
        family.communities.push(CommunityRule {
            network,
            communities,
            origin: origin(field),
        });
    }
}

/// A community by its value, or by the name that the same object gives it.
fn resolve(spec: &BgpConfigurationSpec, text: &str) -> Result<Community, String> {
    if let Some(community) = Community::parse(text) {
        return Ok(community);
    }
    let mut named = spec.communities.iter();
    let Some(found) = named.find(|community| community.name == text) else {
        return Err(format!(
            "{} is neither {} nor a name in spec.communities",
            shown(text),
            Community::EXPECTED
        ));
    };
    Community::parse(&found.value).ok_or_else(|| {
        let (name, value) = (shown(text), shown(&found.value));
        format!(
            "{name} stands for {value}, which is not {}",
            Community::EXPECTED
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_as_many_bits_as_their_number_allows() {
        use Community::{Large, Standard};
        let check = |text, expected| assert_eq!(Community::parse(text), expected, "{text}");
        check("65535:0", Some(Standard(65535, 0)));
        check("1:2:4294967295", Some(Large(1, 2, 4_294_967_295)));
        for wrong in [
            "65536:1",
            "1:2:4294967296",
            "1",
            "1:",
            ":1",
            "1:2:3:4",
            "+1:2",
            "a:1:2",
            "1::2",
            "1:2)",
        ] {
            check(wrong, None);
        }
    }
}
