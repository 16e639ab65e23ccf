//! Rules for nftables whose alternatives are too many to be combined.
//!
//! Lists of alternatives are gone through one after the other, each by a rule for each alternative, so that there are as
//! many rules as the lists have entries together. The mark notes that all lists so far hold. Its two bits for the time of
//! one rule take turns: a step asks for that of the step before and sets the other.

use crate::config::Marks;
use crate::rule::{Action, Match, Rule};

use super::alternatives::Conditions;

impl Conditions {
    /// How many rules the steps are.
    pub(super) fn steps(&self) -> usize {
        let lists = self.wanted.iter().map(Vec::len).filter(|len| *len > 1);
        let (count, alternatives) = lists.fold((0_usize, 0_usize), |(count, sum), len| {
            (count + 1, sum.saturating_add(len))
        });
        // Both bits are cleared at first, and then one before each step but the first two and the last.
        alternatives + 1 + count.saturating_sub(3)
    }

    /// Rules that do for a packet that meets all conditions what the one for each combination would do.
    pub(super) fn in_steps(
        self,
        marks: &Marks,
        finish: impl Fn(Vec<Match>) -> Rule,
        out: &mut Vec<Rule>,
    ) {
        let is_list = |alternatives: &Vec<Match>| alternatives.len() > 1;
        let (mut lists, single): (Vec<_>, Vec<_>) = self.wanted.into_iter().partition(is_list);
        // What needs no step comes first, so that other packets are not looked up in sets.
        let mut so_far: Vec<Match> = single.into_iter().flatten().collect();
        let last = lists.pop().unwrap_or_default();
        out.push(Rule::always(Action::ClearMark(
            marks.scratch0 | marks.scratch1,
        )));
        let bits = [marks.scratch0, marks.scratch1];
        for (step, alternatives) in lists.into_iter().enumerate() {
            let bit = bits[step % bits.len()];
            if step >= bits.len() {
                out.push(Rule::always(Action::ClearMark(bit)));
            }
            out.extend(alternatives.into_iter().map(|alternative| {
                let matches = so_far.iter().cloned().chain([alternative]);
                Rule::when(matches, Action::SetMark(bit))
            }));
            so_far = vec![Match::Mark(bit, bit)];
        }
        out.extend(last.into_iter().map(|alternative| {
            let matches = so_far.iter().cloned().chain([alternative]);
            finish(matches.chain(self.negated.iter().cloned()).collect())
        }));
    }
}

#[cfg(test)]
mod tests {
    use tortie_testkit::Random;

    use super::*;
    use crate::rule::Side;

    /// What becomes of a packet that meets these conditions, and of the mark that it comes with.
    fn outcome(rules: &[Rule], holds: impl Fn(&Match) -> bool, mut mark: u32) -> Option<u32> {
        for rule in rules {
            let mut conditions = rule.matches.iter();
            let is_met = conditions.all(|condition| match condition {
                Match::Mark(value, bits) => mark & bits == *value,
                other => holds(other),
            });
            if !is_met {
                continue;
            }
            for action in &rule.actions {
                match action {
                    Action::SetMark(bits) => mark |= bits,
                    Action::ClearMark(bits) => mark &= !bits,
                    Action::Return => return Some(mark),
                    other => panic!("no rule does {other:?}"),
                }
            }
        }
        None
    }

    fn condition(number: u64) -> Match {
        Match::Set(Side::Source, number.to_string().into())
    }

    /// Up to five conditions with up to four alternatives, and up to two that must not hold.
    fn conditions(random: &mut Random) -> Conditions {
        let mut next = 0;
        let mut list = |length: u64| -> Vec<Match> {
            next += length;
            (next - length..next).map(condition).collect()
        };
        let wanted = (0..random.below(6)).map(|_| list(1 + random.below(4)));
        let wanted = wanted.collect();
        let negated = list(random.below(3)).into_iter().map(|m| match m {
            Match::Set(side, name) => Match::NotSet(side, name),
            other => other,
        });
        Conditions {
            wanted,
            negated: negated.collect(),
        }
    }

    #[test]
    fn steps_match_what_all_combinations_match() {
        let marks = Marks::default();
        let finish = |matches| Rule {
            matches,
            actions: vec![Action::SetMark(marks.accept), Action::Return],
            comments: Vec::new(),
        };
        let mut random = Random::new(1);
        let mut matched = 0;
        let rounds = 20_000;
        for _ in 0..rounds {
            let conditions = conditions(&mut random);
            let combined: Vec<Rule> = conditions.combined().map(finish).collect();
            let expected = conditions.steps();
            let has_lists = conditions
                .wanted
                .iter()
                .filter(|list| list.len() > 1)
                .count()
                > 1;
            let wanted = format!("{:?} {:?}", conditions.wanted, conditions.negated);
            let mut steps = Vec::new();
            if !has_lists {
                continue;
            }
            conditions.in_steps(&marks, finish, &mut steps);
            assert_eq!(steps.len(), expected, "{wanted}");
            for _ in 0..8 {
                let truths = random.below(u64::MAX) | random.below(u64::MAX);
                let number = |name: &str| name.parse::<u32>().expect("a number");
                let holds = |condition: &Match| match condition {
                    Match::Set(_, name) => truths >> number(name) & 1 == 1,
                    Match::NotSet(_, name) => truths >> number(name) & 1 == 0,
                    other => panic!("{other:?} was not asked for"),
                };
                // Bits that are left over from another rule mean nothing.
                let before = u32::try_from(random.below(1 << 32)).expect("32 bits");
                let before = before & !marks.accept;
                let scratch = marks.scratch0 | marks.scratch1;
                let by_steps = outcome(&steps, holds, before).map(|mark| mark & !scratch);
                let by_all = outcome(&combined, holds, before).map(|mark| mark & !scratch);
                assert_eq!(by_steps, by_all, "{wanted}, {truths:b}");
                matched += usize::from(by_all.is_some());
            }
        }
        assert!(matched > rounds / 2, "{matched} packets matched");
    }
}
