//! From a plan to a BIRD that does it.

use std::path::{Path, PathBuf};

use super::report::Outcome;
use super::{Bird, Options};
use crate::bird::config_file::{Parser, Texts};
use crate::bird::reload::{Reload, Reloaded};
use crate::bird::{ConfigFile, Error, Result, Socket};
use crate::{Plan, Problem, render};

/// In which of BIRD's languages configurations are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// One daemon and one file for both IP versions.
    Bird2,
    /// Two daemons and confd's six files.
    Bird1,
}

/// One daemon.
struct Part {
    config: ConfigFile,
    socket: Socket,
    /// What its files begin with.
    prefix: &'static str,
}

/// Writes configurations, and brings them into force.
pub(super) struct Writer {
    syntax: Syntax,
    /// One for BIRD 2, or one for each IP version.
    parts: Vec<Part>,
    reload: Reload,
}

impl Writer {
    pub(super) fn new(options: &Options) -> Result<Self> {
        let names: &[&'static str] = match options.syntax {
            Syntax::Bird2 => &["bird"],
            Syntax::Bird1 => &["bird", "bird6"],
        };
        let mut parts = Vec::new();
        for prefix in names {
            let socket = Socket::new(options.run_folder.join(format!("{prefix}.ctl")));
            let parser = match &options.bird {
                Bird::Supervised(program) | Bird::External(Some(program)) => {
                    Parser::Program(sibling(program, prefix))
                }
                Bird::External(None) => Parser::Running(socket.clone()),
            };
            let main = options.config_folder.join(format!("{prefix}.cfg"));
            parts.push(Part {
                config: ConfigFile::new(&main, parser)?,
                socket,
                prefix,
            });
        }
        Ok(Self {
            syntax: options.syntax,
            parts,
            reload: Reload::default(),
        })
    }

    /// Of the daemon that is supervised.
    pub(super) fn main_socket(&self) -> Socket {
        self.parts[0].socket.clone()
    }

    pub(super) fn main_file(&self) -> PathBuf {
        self.parts[0].config.main()
    }

    /// Whether there is a configuration that BIRD can start with.
    pub(super) fn exists(&self) -> bool {
        self.parts.iter().all(|part| part.config.exists())
    }

    /// What was left out of a plan, and what of it BIRD cannot be told.
    pub(super) fn problems(&self, plan: &Plan) -> Vec<Problem> {
        let mut problems = plan.problems.clone();
        if self.syntax == Syntax::Bird2 {
            problems.extend(render::bird2_problems(plan));
        }
        problems
    }

    pub(super) async fn write(&mut self, plan: &Plan) -> Result<Outcome> {
        let texts: Texts = match self.syntax {
            Syntax::Bird2 => [("bird.cfg".to_owned(), render::bird2(plan))].into(),
            Syntax::Bird1 => {
                let files = render::bird1(plan);
                let files = files.files().into_iter();
                files
                    .map(|(name, text)| (name.to_owned(), text.to_owned()))
                    .collect()
            }
        };
        let mut outcome = Outcome::Unchanged;
        for part in &self.parts {
            let is_of_part = |name: &str| {
                let rest = name.strip_prefix(part.prefix);
                rest.is_some_and(|rest| rest.starts_with(['.', '_']))
            };
            let own = texts.iter().filter(|(name, _)| is_of_part(name));
            let own: Texts = own
                .map(|(name, text)| (name.clone(), text.clone()))
                .collect();
            match self.reload.run(&part.config, &part.socket, own).await? {
                Reloaded::Unchanged => {}
                Reloaded::Written => outcome = in_force(outcome, Vec::new()),
                Reloaded::Confirmed { missing } => outcome = in_force(outcome, missing),
                Reloaded::Undone { lost } => return Ok(Outcome::Undone { lost }),
            }
        }
        Ok(outcome)
    }

    /// Takes back that nothing is to be had here.
    pub(super) async fn begin_sessions(&self) -> Result<()> {
        for part in &self.parts {
            match part.socket.begin_sessions().await {
                Err(Error::Unreachable { .. }) => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Tells peers that nothing is to be had here any more. The BIRD of somebody else goes on, without sessions.
    pub(super) async fn withdraw(&self) -> Result<()> {
        for part in &self.parts {
            match part.socket.end_sessions().await {
                // Nobody to tell.
                Err(Error::Unreachable { .. }) => {}
                done => done?,
            }
        }
        Ok(())
    }
}

fn in_force(before: Outcome, missing: Vec<String>) -> Outcome {
    match before {
        Outcome::InForce { missing: mut all } => {
            all.extend(missing);
            Outcome::InForce { missing: all }
        }
        _ => Outcome::InForce { missing },
    }
}

/// `bird6` beside `bird`.
fn sibling(program: &Path, name: &str) -> PathBuf {
    match name {
        "bird" => program.to_owned(),
        name => program.with_file_name(name),
    }
}
