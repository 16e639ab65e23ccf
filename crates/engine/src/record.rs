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

use std::io::{self, Write};

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

/// Writes events, a line each.
pub struct Recorder<W: Write> {
    sink: W,
    /// How many bytes may still be written.
    left: u64,
    /// The first failure; nothing is written after it.
    outcome: io::Result<()>,
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

// === impl Recorder ===

impl<W: Write> Recorder<W> {
    /// A recorder that writes at most so many bytes.
    pub fn new(sink: W, most: u64) -> Self {
        Self {
            sink,
            left: most,
            outcome: Ok(()),
        }
    }

    /// Writes an event. What is asked of the engine ends a step, which is then complete in the sink.
    pub fn write(&mut self, event: &Event) {
        if self.outcome.is_ok() {
            self.outcome = self.try_write(event);
        }
    }

    fn try_write(&mut self, event: &Event) -> io::Result<()> {
        let line = event.to_line();
        let length = line.len() as u64 + 1;
        self.left = self.left.checked_sub(length).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the recording has become too long",
            )
        })?;
        writeln!(self.sink, "{line}")?;
        if *event == Event::Flush {
            self.sink.flush()?;
        }
        Ok(())
    }

    /// Whether something could not be written.
    pub fn has_failed(&self) -> bool {
        self.outcome.is_err()
    }

    /// Ends the recording; tells whether all was written.
    pub fn finish(mut self) -> io::Result<()> {
        self.outcome.and_then(|()| self.sink.flush())
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
