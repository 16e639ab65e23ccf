//! Answers for other commands, which show them beside something else.

use std::io::Write;

use anyhow::Result;
use serde_json::{Map, Value};
use tortie_client::Client;
use tortie_engine::verdict::Verdict;

use super::flow::Question;
use super::reply::Reply;
use super::world::World;
use super::{load, text};

/// What can be asked about the resources that a datastore holds at one moment.
pub(in crate::commands) struct Answers {
    world: World,
}

/// The answer to one question.
pub(in crate::commands) struct Answer {
    question: Question,
    reply: Reply,
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
        let kernels = self.world.kernels();
        let mut judge = self.world.engine.judge_with(&kernels);
        let reply = question.ask(&self.world.directory, &mut judge)?;
        let Some(foremost) = reply.foremost() else {
            anyhow::bail!("nothing is behind `{}`", question.to);
        };
        Ok(Answer {
            verdict: foremost.verdict.clone(),
            question,
            reply,
        })
    }
}

impl Answer {
    /// Writes what `tortie why` prints.
    pub(in crate::commands) fn write(&self, out: &mut impl Write) -> Result<()> {
        text::Told::new(&self.question, &self.reply).write(out)
    }

    /// Writes it as one line.
    pub(in crate::commands) fn write_line(&self, out: &mut impl Write) -> Result<()> {
        text::Told::new(&self.question, &self.reply).write_line(out)
    }
}
