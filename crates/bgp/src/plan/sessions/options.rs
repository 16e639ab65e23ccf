//! What a `BGPPeer` says about its session, whoever the neighbour is.

use std::net::IpAddr;
use std::sync::Arc;

use tortie_api::kinds::bgp_peer::{BgpPeerSpec, NextHopMode, SourceAddress};
use tortie_api::net;
use tortie_api::scalar::GoDuration;

use super::Context;
use crate::Family;
use crate::plan::{NextHop, Origin, Problems, shown};
use crate::text::Password;

const NANOS: i64 = 1_000_000_000;

/// What can be said to a neighbour about a restart, and the time after which BIRD holds it for dead.
const MAX_RESTART: u16 = 4095;
const MAX_KEEPALIVE: u16 = 240;

/// The way to a neighbour.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// By the routes that there are.
    Known,
    /// By this gateway.
    By(IpAddr),
}

/// The options of all sessions of a `BGPPeer`.
pub(super) struct Options {
    pub(super) local_as: Option<u32>,
    pub(super) has_source: bool,
    pub(super) ttl_security: Option<u8>,
    pub(super) restart_time: Option<u16>,
    pub(super) keepalive_time: Option<u16>,
    pub(super) next_hop: NextHop,
    /// Only towards other AS numbers.
    pub(super) keeps_external_next_hop: bool,
    pub(super) allowed_local_as: Option<u32>,
    pub(super) password: Option<Password>,
    pub(super) filters: Vec<usize>,
}

impl Options {
    /// None where there can be no session.
    pub(super) fn read(
        context: &Context,
        name: &Arc<str>,
        spec: &BgpPeerSpec,
        problems: &mut Problems,
    ) -> Option<Self> {
        let origin = |field: &'static str| Origin::new("BGPPeer", Arc::clone(name), field);
        let selector = spec.password.as_ref();
        let selector = selector.and_then(|password| password.secret_key_ref.as_ref());
        let password = match selector
            .map(|selector| context.password(selector))
            .transpose()
        {
            Ok(password) => password,
            Err(reason) => {
                let origin = origin("spec.password.secretKeyRef");
                problems.push(origin.problem(format!("{reason}; no session is opened")));
                return None;
            }
        };
        let mut filters = Vec::new();
        for (index, filter) in spec.filters.iter().enumerate() {
            if let Some(filter) = context.filters.get(filter.as_str()) {
                filters.push(*filter);
                continue;
            }
            let field = format!("spec.filters[{index}]");
            let origin = Origin::new("BGPPeer", Arc::clone(name), field);
            let filter = shown(filter);
            problems.push(origin.problem(format!(
                "there is no BGPFilter {filter}; the session is without it"
            )));
        }
        let restart = spec.max_restart_time;
        let keepalive = spec.keepalive_time;
        Some(Self {
            local_as: spec.local_as_number.map(|n| n.0).filter(|n| *n != 0),
            has_source: spec.source_address != Some(SourceAddress::None),
            ttl_security: spec.ttl_security.filter(|hops| *hops > 0),
            restart_time: restart
                .and_then(|time| restart_time(time, &origin("spec.maxRestartTime"), problems)),
            keepalive_time: keepalive.and_then(|time| {
                seconds(
                    time,
                    1,
                    MAX_KEEPALIVE,
                    &origin("spec.keepaliveTime"),
                    problems,
                )
            }),
            next_hop: match spec.next_hop_mode {
                Some(NextHopMode::SelfAddress) => NextHop::Own,
                Some(NextHopMode::Keep) => NextHop::Keep,
                Some(NextHopMode::Auto) | None => NextHop::Auto,
            },
            keeps_external_next_hop: spec.keep_original_next_hop,
            allowed_local_as: allowed_local_as(spec, &origin, problems),
            password,
            filters,
        })
    }
}

fn allowed_local_as(
    spec: &BgpPeerSpec,
    origin: &impl Fn(&'static str) -> Origin,
    problems: &mut Problems,
) -> Option<u32> {
    let given = spec.num_allowed_local_as_numbers?;
    let number = u32::try_from(given).ok();
    if number.is_none() {
        problems.push(origin("spec.numAllowedLocalASNumbers").problem(format!(
            "{given} is not how often something may be: 0 or more; it counts as 0"
        )));
    }
    number.filter(|number| *number > 0)
}

pub(super) fn restart_time(
    time: GoDuration,
    origin: &Origin,
    problems: &mut Problems,
) -> Option<u16> {
    seconds(time, 0, MAX_RESTART, origin, problems)
}

/// Whole seconds, the nearest ones.
fn seconds(
    time: GoDuration,
    min: u16,
    max: u16,
    origin: &Origin,
    problems: &mut Problems,
) -> Option<u16> {
    let nanos = time.as_nanos();
    let rounded = nanos.div_euclid(NANOS) + i64::from(nanos.rem_euclid(NANOS) >= NANOS / 2);
    let seconds = u16::try_from(rounded).ok();
    let seconds = seconds.filter(|seconds| (min..=max).contains(seconds));
    if seconds.is_none() {
        problems.push(origin.problem(format!(
            "{rounded}s is not from {min}s to {max}s, which is what BIRD can keep to; its default is used"
        )));
    }
    seconds
}

/// The way to a neighbour. One that cannot be read is a reason for no session.
pub(super) fn gateway(
    name: &Arc<str>,
    spec: &BgpPeerSpec,
    neighbour: IpAddr,
    problems: &mut Problems,
) -> Option<Way> {
    let text = &spec.reachable_by;
    if text.is_empty() {
        return Some(Way::Known);
    }
    let is_right = |gateway: &IpAddr| {
        Family::of(*gateway) == Family::of(neighbour)
            && *gateway != neighbour
            && crate::inputs::is_unicast(*gateway)
    };
    let gateway = net::parse_ip(text).filter(is_right);
    if gateway.is_none() {
        let origin = Origin::new("BGPPeer", Arc::clone(name), "spec.reachableBy");
        let family = Family::of(neighbour);
        problems.push(origin.problem(format!(
            "{} is not the {family} address of a gateway to {neighbour}; no session is opened",
            shown(text)
        )));
    }
    gateway.map(Way::By)
}
