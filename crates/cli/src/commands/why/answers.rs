//! Answers for other commands, which show them beside something else.

use std::io::Write;

use anyhow::Result;
use serde_json::{Map, Value};
use tortie_engine::verdict::{Flow, Verdict};
use tortie_store::Client;

use super::flow::Question;
use super::world::World;
use super::{load, text};

/// What can be asked about the resources that a datastore holds at one moment.
pub(in crate::commands) struct Answers {
    world: World,
}

/// The answer to one question.
pub(in crate::commands) struct Answer {
    question: Question,
    flow: Flow,
    /// What the engine says.
    pub(in crate::commands) verdict: Verdict,
}

impl Answers {
    /// Reads a datastore.
    pub(in crate::commands) async fn from(client: &Client) -> Result<Self> {
        Ok(Self {
            world: load::from_client(client).await?,
        })
    }

    /// Answers a question with the fields that lines of `--batch` have.
    pub(in crate::commands) fn ask(&self, fields: &Map<String, Value>) -> Result<Answer> {
        let question = Question::from_json(fields)?;
        let flow = question.flow(&self.world.directory)?;
        let kernels = self.world.kernels();
        let verdict = self.world.engine.judge_with(&kernels).verdict(&flow);
        Ok(Answer {
            question,
            flow,
            verdict,
        })
    }
}

impl Answer {
    /// Writes what `tortie why` prints.
    pub(in crate::commands) fn write(&self, out: &mut impl Write) -> Result<()> {
        text::write(&self.question, &self.flow, &self.verdict, out)
    }

    /// Writes it as one line.
    pub(in crate::commands) fn write_line(&self, out: &mut impl Write) -> Result<()> {
        text::write_line(&self.question, &self.verdict, out)
    }
}
