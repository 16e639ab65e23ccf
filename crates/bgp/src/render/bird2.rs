//! One file for BIRD 2, which speaks both IP versions in one daemon.
//!
//! It says what the files for BIRD 1.6 say, in fewer words: networks that are treated alike are sets, which BIRD looks up instead
//! of trying one by one, and what most sessions have in common is in their template.

mod routes;
mod sessions;

use super::text::{Text, line};
use crate::plan::{Encapsulation, FamilyPlan, LogLevel, Programmer, Programs};
use crate::{Family, Plan, Problem};

/// `rtm_protocol` of the agent's routes to other nodes, and of those that end here.
const AGENT: u8 = 80;

/// How long BIRD waits for its peers after a restart before it tells of anything, in seconds. Those that live are back
/// sooner, also after an error; by BIRD's default, one that does not holds up all others for four minutes.
const RECOVERY: u32 = 60;

/// Writes a plan. The text holds passwords.
pub fn bird2(plan: &Plan) -> String {
    let mut out = Text::default();
    line!(
        out,
        "# Written by Tortie from what the datastore says: changes are lost."
    );
    line!(out, "router id {};", plan.router_id);
    line!(out, "graceful restart wait {RECOVERY};\n");
    line!(out, "protocol device {{");
    debug(&mut out, plan.log, "states");
    line!(out, "  scan time 2;\n}}\n");
    direct(&mut out, plan);
    for family in Family::BOTH {
        let of_family = plan.family(family);
        routes::render(&mut out, of_family);
        kernel(&mut out, family);
        sessions::render(&mut out, plan, of_family);
    }
    out.finish()
}

/// What of a plan cannot be said to BIRD 2, besides the plan's own problems.
pub fn bird2_problems(plan: &Plan) -> Vec<Problem> {
    let pools = &plan.family(Family::V4).pools;
    let mut tunnelled = pools.iter().filter(|pool| {
        pool.programmer == Programmer::Bird && matches!(pool.encapsulation, Encapsulation::Ipip(_))
    });
    let Some(first) = tunnelled.next() else {
        return Vec::new();
    };
    let (bird, agent) = match plan.bird_programs {
        Programs { no_encap: true, .. } => ("EnabledNoEncapOnly", "EnabledIPIPOnly"),
        Programs {
            no_encap: false, ..
        } => ("Disabled", "Enabled"),
    };
    let (name, others) = (&first.origin.name, tunnelled.count());
    vec![Problem {
        kind: "BGPConfiguration",
        name: "default".to_owned(),
        field: "spec.programClusterRoutes".into(),
        reason: format!(
            "BIRD 2 programs no routes with IP-in-IP, which IPPool({name}) and {others} others have: set {bird} here, and \
             {agent} in spec.programClusterRoutes of the FelixConfiguration, so that the agent does"
        ),
    }]
}

fn direct(out: &mut Text, plan: &Plan) {
    line!(out, "protocol direct {{");
    debug(out, plan.log, "states");
    line!(out, "  ipv4;\n  ipv6;");
    let ignored = plan.ignored_interfaces.iter();
    let ignored = ignored.fold(String::new(), |text, pattern| {
        text + &format!("-\"{pattern}\", ")
    });
    line!(
        out,
        "  interface {ignored}-\"cali*\", -\"kube-ipvs*\", \"*\";\n}}\n"
    );
}

/// Routes stay when BIRD stops. Without a metric of its own, each route has the one that the filter gives it.
///
/// What the agent makes besides routes to workloads' interfaces is not learnt: peers would be told of a node's blocks a second time, with
/// the preference of what is on the move, since these routes have no metric; and their BIRD would write over those of their agents.
fn kernel(out: &mut Text, family: Family) {
    let (v, channel) = (suffix(family), channel(family));
    line!(out, "protocol kernel kernel_{v} {{");
    out.push_str("  learn;\n  persist;\n  scan time 2;\n  graceful restart;\n  merge paths on;\n  metric 0;\n");
    line!(out, "  {channel} {{");
    line!(
        out,
        "    import filter {{ if krt_source = {AGENT} && (dest = RTD_BLACKHOLE || gw != ::) then reject; accept; }};"
    );
    line!(out, "    export filter calico_kernel_programming_{v};");
    line!(out, "  }};\n}}\n");
}

fn debug(out: &mut Text, log: LogLevel, what: &str) {
    match log {
        LogLevel::None => {}
        LogLevel::Info => line!(out, "  debug {{ {what} }};"),
        LogLevel::Debug => line!(out, "  debug all;"),
    }
}

/// What names of an IP version end with.
fn suffix(family: Family) -> &'static str {
    match family {
        Family::V4 => "v4",
        Family::V6 => "v6",
    }
}

fn channel(family: Family) -> &'static str {
    match family {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    }
}

/// Whether the node has sessions of the IP version.
fn has_sessions(plan: &FamilyPlan) -> bool {
    plan.address.is_some()
}
