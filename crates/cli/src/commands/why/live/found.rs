//! What the kernel has for an answer.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

/// What the kernel has for an answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands::why) struct Found {
    pub(super) node: String,
    pub(super) dataplane: String,
    /// Whether the kernel has all that the answer depends on as the model has it.
    pub(in crate::commands::why) agrees: bool,
    pub(super) hits: Vec<Hit>,
    /// How the kernel differs there.
    pub(super) differences: Vec<String>,
    /// How many differences there are elsewhere.
    pub(super) elsewhere: usize,
}

/// The rules that a packet meets where it is decided about.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Hit {
    pub(super) to: String,
    pub(super) place: &'static str,
    pub(super) chain: String,
    pub(super) rules: Vec<KernelRule>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KernelRule {
    /// Its place in the chain, from 0.
    pub(super) number: usize,
    pub(super) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) packets: Option<u64>,
}

impl Found {
    /// Tells it to people.
    pub(in crate::commands::why) fn write(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "\nKernel of node {}, {}", self.node, self.dataplane)?;
        for hit in &self.hits {
            writeln!(out, "  {} ({}): chain {}", hit.to, hit.place, hit.chain)?;
            for rule in &hit.rules {
                let counted = match rule.packets {
                    Some(1) => "1 packet".to_owned(),
                    Some(packets) => format!("{packets} packets"),
                    None => "not there as it should be".to_owned(),
                };
                writeln!(out, "    rule {}, {counted}: {}", rule.number, rule.text)?;
            }
        }
        if self.agrees {
            writeln!(
                out,
                "  agrees with the model: all that the answer depends on is there"
            )?;
        } else {
            writeln!(out, "  DIFFERS from the model:")?;
            for difference in &self.differences {
                writeln!(out, "    {difference}")?;
            }
        }
        if self.elsewhere > 0 {
            let count = self.elsewhere;
            writeln!(
                out,
                "  {count} differences elsewhere: see `tortie node verify`"
            )?;
        }
        Ok(())
    }
}
