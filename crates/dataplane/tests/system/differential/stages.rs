//! What decides about a packet, in the product's answer for its whole way.

use tortie_engine::verdict::{By, Outcome, Point, Side, Verdict};

use crate::differential::packets::Case;
use crate::differential::places::Place;

/// What decides about packets.
pub(crate) const STAGES: [&str; 9] = [
    BEFORE_TRACKING,
    BEFORE_NAT,
    FORWARDED_IN,
    OUT_OF_SOURCE,
    INTO_DESTINATION,
    FORWARDED_OUT,
    POD_TO_HOST,
    TO_HOST,
    FROM_HOST,
];
const BEFORE_TRACKING: &str = "before tracking";
const BEFORE_NAT: &str = "before NAT";
const FORWARDED_IN: &str = "forwarded in";
const OUT_OF_SOURCE: &str = "out of the source";
const INTO_DESTINATION: &str = "into the destination";
const FORWARDED_OUT: &str = "forwarded out";
const POD_TO_HOST: &str = "from a pod to its host";
const TO_HOST: &str = "to the host";
const FROM_HOST: &str = "from the host";

/// All that decides about a packet, and whether it lets it pass.
pub(crate) fn decided(case: &Case, verdict: &Verdict) -> Vec<(&'static str, bool)> {
    let ends = [
        (&verdict.egress, out_of(&case.from)),
        (&verdict.ingress, into(&case.to, &verdict.ingress)),
    ];
    let on_the_way = verdict.on_the_way.iter().map(|stage| {
        let forwarded = if stage.is_inbound {
            FORWARDED_IN
        } else {
            FORWARDED_OUT
        };
        (&stage.side, forwarded)
    });
    let all = ends.into_iter().chain(on_the_way);
    let asked = all.filter(|(side, _)| side.endpoint.is_some() || is_of_host(side));
    asked
        .map(|(side, usual)| {
            let stage = match side.by.point() {
                Point::Untracked => BEFORE_TRACKING,
                Point::PreDnat => BEFORE_NAT,
                Point::Normal | Point::Forward => usual,
            };
            (stage, side.verdict == Outcome::Allow)
        })
        .collect()
}

fn out_of(place: &Place) -> &'static str {
    match place {
        Place::Host => FROM_HOST,
        Place::Pod(_) | Place::Outside => OUT_OF_SOURCE,
    }
}

fn into(place: &Place, side: &Side) -> &'static str {
    match place {
        Place::Host if is_of_host(side) => POD_TO_HOST,
        Place::Host => TO_HOST,
        Place::Pod(_) | Place::Outside => INTO_DESTINATION,
    }
}

fn is_of_host(side: &Side) -> bool {
    matches!(side.by, By::EndpointToHost { .. })
}
