//! Policies and profiles, ready to be asked.

use super::rule_match::Explainer;
use crate::input;
use crate::message::{Policy, Profile, Rule};

/// The side of an endpoint that a packet passes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Ingress,
    Egress,
}

/// A policy or profile, ready to be asked.
#[derive(Default)]
pub(super) struct Judged<M> {
    pub(super) message: M,
    /// One for each rule.
    inbound: Vec<Explainer>,
    outbound: Vec<Explainer>,
}

/// What has rules for both directions.
pub(super) trait Ruled {
    fn rules(&self, direction: Direction) -> &[Rule];
}

impl<M: Ruled> Judged<M> {
    /// What the data plane is given, and what the user wrote.
    pub(super) fn new(message: M, inbound: &[input::Rule], outbound: &[input::Rule]) -> Self {
        let explainers = |rules: &[input::Rule]| rules.iter().map(Explainer::new).collect();
        Self {
            message,
            inbound: explainers(inbound),
            outbound: explainers(outbound),
        }
    }

    /// The rules for one direction.
    pub(super) fn of(
        &self,
        direction: Direction,
    ) -> impl ExactSizeIterator<Item = (&Rule, &Explainer)> {
        let explainers = match direction {
            Direction::Ingress => &self.inbound,
            Direction::Egress => &self.outbound,
        };
        self.message.rules(direction).iter().zip(explainers)
    }
}

impl Ruled for Policy {
    fn rules(&self, direction: Direction) -> &[Rule] {
        match direction {
            Direction::Ingress => &self.inbound_rules,
            Direction::Egress => &self.outbound_rules,
        }
    }
}

impl Ruled for Profile {
    fn rules(&self, direction: Direction) -> &[Rule] {
        match direction {
            Direction::Ingress => &self.inbound_rules,
            Direction::Egress => &self.outbound_rules,
        }
    }
}
