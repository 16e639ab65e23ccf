//! Answers about the resources of a datastore, for who shows them beside something else.

use anyhow::Result;
use serde_json::{Map, Value};
use tortie_client::Client;
use tortie_engine::verdict::Verdict;

use crate::flow::Question;
use crate::reply::Reply;
use crate::world::World;
use crate::{Tell, load};

/// What can be asked about the resources that a datastore holds at one moment.
pub struct Answers {
    world: World,
}

/// The answer to one question.
pub struct Answer {
    /// What was asked.
    pub question: Question,
    /// What is said to it.
    pub reply: Reply,
    /// What the engine says.
    pub verdict: Verdict,
}

impl Answers {
    /// Reads a datastore.
    pub async fn from(client: &Client, tell: Tell<'_>) -> Result<Self> {
        Ok(Self {
            world: load::from_client(client, tell).await?,
        })
    }

    /// Answers a question with the fields that lines of `--batch` have.
    pub fn ask(&self, fields: &Map<String, Value>) -> Result<Answer> {
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
