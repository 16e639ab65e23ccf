//! The agent's configuration: where it comes from, what is accepted, and what it means.

mod any_text;
mod parameters;
mod resolve;
mod settings;
mod sources;
mod texts;
mod values;
