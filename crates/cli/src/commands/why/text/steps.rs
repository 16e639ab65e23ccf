//! All that was asked, in order.

use std::io::Write;

use anyhow::Result;
use tortie_engine::input::DefaultAction;
use tortie_engine::verdict::{By, PolicyStep, Side, Step};

use super::{BAD, STRONG, Told, point};

impl Told<'_> {
    pub(super) fn write_trace(
        &self,
        (direction, asked, is_ingress): (&str, &str, bool),
        side: &Side,
        out: &mut impl Write,
    ) -> Result<()> {
        if side.trace.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        writeln!(
            out,
            "{STRONG}{direction} of {asked}, step by step{STRONG:#}"
        )?;
        for step in &side.trace {
            match step {
                Step::Tier(tier) => {
                    writeln!(out, "  tier {}{}", tier.tier, point(tier.point))?;
                    for policy in &tier.policies {
                        self.write_policy(policy, is_ingress, out)?;
                    }
                    match tier.end {
                        None => {}
                        Some(DefaultAction::Deny) => {
                            writeln!(out, "    {BAD}end of tier: Deny{BAD:#}")?;
                        }
                        Some(DefaultAction::Pass) => writeln!(out, "    end of tier: Pass")?,
                    }
                }
                Step::Profile(profile) => {
                    let missing = if profile.missing {
                        ": does not exist, and so denies everything"
                    } else if profile.denial.is_some() {
                        ": denies, whatever its rules say"
                    } else {
                        ""
                    };
                    writeln!(out, "  profile {}{missing}", profile.profile)?;
                    for rule in &profile.rules {
                        self.write_rule(None, rule, "    ", out)?;
                    }
                }
            }
        }
        if let By::NoProfile { .. } = side.by {
            writeln!(out, "  {BAD}no profile is left: Deny{BAD:#}")?;
        }
        Ok(())
    }

    fn write_policy(
        &self,
        policy: &PolicyStep,
        is_ingress: bool,
        out: &mut impl Write,
    ) -> Result<()> {
        let staged = if policy.staged {
            " (staged: decides nothing)"
        } else {
            ""
        };
        let none = if policy.denial.is_some() {
            ": denies, whatever its rules say"
        } else if policy.rules.is_empty() {
            ": no rules"
        } else {
            ""
        };
        writeln!(out, "    {}{staged}{none}", policy.policy.full_name())?;
        for rule in &policy.rules {
            self.write_rule(Some((&policy.policy, is_ingress)), rule, "      ", out)?;
        }
        Ok(())
    }
}
