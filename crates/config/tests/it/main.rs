//! The agent's configuration: where it comes from, what is accepted, and what it means.

mod any_text;
mod felix_configuration;
mod parameters;
mod resolve;
mod settings;
mod sources;
mod texts;
mod values;
