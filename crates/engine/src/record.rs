//! The input of an engine as lines of text, to be kept and played again elsewhere.
//!
//! ```
//! use tortie_engine::record::{Event, Replay};
//! use tortie_engine::{Config, Update};
//!
//! let events = [
//!     Event::Start(Config::for_node("n1")),
//!     Event::Update(Box::new(Update::Tier("default".to_owned(), None))),
//!     Event::InSync,
//!     Event::Flush,
//! ];
//! let mut replay = Replay::default();
//! let mut messages = Vec::new();
//! for event in &events {
//!     let line = event.to_line();
//!     replay.play(&Event::from_line(&line)?, &mut |message| messages.push(message))?;
//! }
//! assert_eq!(messages.last(), Some(&tortie_engine::Message::InSync));
//! # Ok::<(), tortie_engine::record::Error>(())
//! ```

use serde::{Deserialize, Serialize};

use crate::{Config, Engine, Message, Update};

/// Something that an engine was told or asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Event {
    /// The engine was made; always first.
    Start(Config),
    /// It was told the state of an object.
    Update(Box<Update>),
    /// It was told that all there is has been told.
    InSync,
    /// It was asked what changed.
    Flush,
}

/// An engine that is told again what another was told.
#[derive(Default)]
pub struct Replay {
    engine: Option<Engine>,
}

/// Why a record cannot be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A line is not an event.
    #[error("not an event of a recording: {0}")]
    NotAnEvent(#[from] serde_json::Error),
    /// The first event is missing.
    #[error("a recording begins with `start`, which says for which node it is")]
    NotStarted,
}

// === impl Event ===

impl Event {
    /// The event as one line, without its end.
    pub fn to_line(&self) -> String {
        // All keys are text and all numbers finite, or they would not have been read.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`Self::to_line`] wrote.
    pub fn from_line(line: &str) -> Result<Self, Error> {
        Ok(serde_json::from_str(line)?)
    }
}

// === impl Replay ===

impl Replay {
    /// Plays one event; a flush gives the messages that it gave when it was recorded.
    pub fn play(&mut self, event: &Event, sink: &mut dyn FnMut(Message)) -> Result<(), Error> {
        if let Event::Start(config) = event {
            self.engine = Some(Engine::new(config.clone()));
            return Ok(());
        }
        let engine = self.engine.as_mut().ok_or(Error::NotStarted)?;
        match event {
            Event::Update(update) => engine.on_update(update),
            Event::InSync => engine.on_in_sync(),
            Event::Flush => engine.flush_to(sink),
            Event::Start(_) => {}
        }
        Ok(())
    }

    /// The engine as it is after the events so far.
    pub fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }
}
