//! The newest configuration that the agent can run with.
//!
//! What the machine itself says must be right, or the agent does not start: a person is there to read why. What the
//! datastore says concerns every node at once, and the agent may be all that makes repairing it possible. So a bad value
//! from there ends nothing: the configuration before it stays, whole. Where there was none, bad parameters alone are left
//! out.

use std::collections::BTreeMap;

use tortie_engine::message::Encapsulation;
use tortie_rules::Config as RulesConfig;

use crate::agent::Error;
use crate::host::choose;
use tortie_config::{Config, DatastoreConfig, Sources, WithoutEffect, resolve, without_effect};
use tortie_error::Causes;

/// See the module.
#[derive(Debug)]
pub(crate) struct LastGood {
    good: Good,
    /// Whether the datastore has said anything that was good.
    has_datastore: bool,
    refused: Option<Refused>,
    /// What there was before the newest change.
    previous: Option<Good>,
}

/// A configuration that the agent can run with.
#[derive(Debug)]
struct Good {
    /// What it comes from; of what the datastore says, only what was good.
    sources: Sources,
    config: Config,
    /// Parameters that are set to something that the agent does not do.
    without_effect: Vec<WithoutEffect>,
}

/// What the datastore says, and why the agent cannot run with it.
#[derive(Debug)]
struct Refused {
    update: DatastoreConfig,
    reason: String,
}

/// A parameter that the agent cannot run with.
#[derive(Debug)]
struct Bad {
    parameter: String,
    is_local: bool,
    reason: String,
}

impl LastGood {
    /// What the machine itself says.
    pub(crate) fn new(
        environment: BTreeMap<String, String>,
        file: BTreeMap<String, String>,
        allows_cleartext: bool,
    ) -> Result<Self, Error> {
        let sources = Sources {
            environment,
            file,
            allows_cleartext,
            ..Sources::default()
        };
        let good = runnable(&sources).map_err(|bad| Error::Configuration(reasons(&bad)))?;
        Ok(Self {
            good,
            has_datastore: false,
            refused: None,
            previous: None,
        })
    }

    /// The configuration that holds.
    pub(crate) fn config(&self) -> &Config {
        &self.good.config
    }

    /// Parameters that are set to something that the agent does not do.
    pub(crate) fn without_effect(&self) -> &[WithoutEffect] {
        &self.good.without_effect
    }

    /// Why the newest configuration does not hold, if it does not.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.refused.as_ref().map(|refused| &*refused.reason)
    }

    /// The datastore says this now.
    pub(crate) fn set_datastore(&mut self, update: DatastoreConfig) {
        let is_known = |refused: &Refused| refused.update == update;
        if self.has_datastore && self.refused.as_ref().is_some_and(is_known) {
            return;
        }
        let mut sources = self.good.sources.clone();
        sources.datastore = update.clone();
        match runnable(&sources) {
            Ok(good) => self.accept(good, None),
            Err(bad) => {
                let kept = if self.has_datastore {
                    "the configuration before it stays in force"
                } else {
                    "it is left out"
                };
                let refused = Refused {
                    update,
                    reason: format!("{}; {kept}", reasons(&bad)),
                };
                tracing::error!(
                    reason = refused.reason,
                    "The configuration of the datastore cannot be used"
                );
                if self.has_datastore {
                    self.refused = Some(refused);
                } else {
                    self.accept(without(sources, bad), Some(refused));
                }
            }
        }
    }

    /// The agent could not start with the newest configuration: the one before it holds again. Nothing changes, and the
    /// error is given back, if there is none.
    pub(crate) fn revert(&mut self, error: Error) -> Result<(), Error> {
        let Some(good) = self.previous.take() else {
            return Err(error);
        };
        let failed = std::mem::replace(&mut self.good, good).sources;
        let reason = format!(
            "{}; the configuration before it stays in force",
            Causes(&error)
        );
        tracing::error!(reason, "The agent could not start with a new configuration");
        self.refused = Some(Refused {
            update: failed.datastore,
            reason,
        });
        Ok(())
    }

    fn accept(&mut self, good: Good, refused: Option<Refused>) {
        self.previous = Some(std::mem::replace(&mut self.good, good));
        self.refused = refused;
        self.has_datastore = true;
    }
}

/// The configuration that follows from these, or what in them the agent cannot run with.
fn runnable(sources: &Sources) -> Result<Good, Vec<Bad>> {
    let resolved = resolve(sources);
    let mut bad = Vec::new();
    for problem in &resolved.problems {
        if problem.fatal {
            bad.push(Bad {
                parameter: problem.parameter.clone(),
                is_local: problem.origin.is_local(),
                reason: problem.to_string(),
            });
        } else {
            tracing::warn!(%problem, "A parameter is not used as it is set");
        }
    }
    let config = resolved.config.clone();
    if let Err(error) = RulesConfig::new(&config, choose(&config), Encapsulation::default()) {
        let origin = resolved.origin(error.parameter);
        bad.push(Bad {
            parameter: error.parameter.to_owned(),
            is_local: origin.is_none_or(tortie_config::Origin::is_local),
            reason: error.to_string(),
        });
    }
    if !bad.is_empty() {
        return Err(bad);
    }
    let without_effect = without_effect(&resolved);
    for parameter in &without_effect {
        tracing::warn!(%parameter, "A parameter is set and has no effect");
    }
    Ok(Good {
        sources: sources.clone(),
        config,
        without_effect,
    })
}

/// The configuration without what is bad of the datastore's; at most all of that is bad.
fn without(mut sources: Sources, mut bad: Vec<Bad>) -> Good {
    loop {
        for bad in &bad {
            sources.datastore.forget(&bad.parameter);
        }
        match runnable(&sources) {
            Ok(good) => return good,
            Err(more) if more.iter().any(|bad| !bad.is_local) => bad = more,
            // Not met: the machine's own part was good at the start.
            Err(_) => {
                sources.datastore = DatastoreConfig::default();
                let config = resolve(&sources).config;
                return Good {
                    sources,
                    config,
                    without_effect: Vec::new(),
                };
            }
        }
    }
}

fn reasons(bad: &[Bad]) -> String {
    let reasons: Vec<&str> = bad.iter().map(|bad| &*bad.reason).collect();
    reasons.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(parameters: &[(&str, &str)]) -> DatastoreConfig {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).into());
        DatastoreConfig {
            global: parameters.iter().map(owned).collect(),
            ..DatastoreConfig::default()
        }
    }

    fn local() -> LastGood {
        LastGood::new(BTreeMap::new(), BTreeMap::new(), false).unwrap()
    }

    /// Parameters that pass as texts, or nearly, and that the agent cannot run with.
    const BAD: [(&str, &str); 3] = [
        ("IptablesMarkMask", "1"),
        ("NftablesMarkMask", "0xf0000000"),
        ("InterfacePrefix", "*"),
    ];

    #[test]
    fn a_bad_value_leaves_the_configuration_before_it_in_force() {
        for (name, value) in BAD {
            for mode in ["Enabled", "Disabled"] {
                let mut last_good = local();
                last_good.set_datastore(said(&[("LogPrefix", "one"), ("NFTablesMode", mode)]));
                let before = last_good.config().clone();
                last_good.set_datastore(said(&[
                    ("LogPrefix", "two"),
                    ("NFTablesMode", mode),
                    (name, value),
                ]));
                if let Some(reason) = last_good.refused() {
                    assert!(reason.contains(name), "{reason}");
                    assert_eq!(*last_good.config(), before, "{name} {mode}");
                    last_good.set_datastore(said(&[("NFTablesMode", mode)]));
                    assert_eq!(last_good.refused(), None);
                } else {
                    // The mark of the data plane that is not in use.
                    assert_eq!(name.starts_with("Nft"), mode == "Disabled", "{name} {mode}");
                }
            }
        }
    }

    #[test]
    fn at_the_start_a_bad_value_alone_is_left_out() {
        let mut last_good = local();
        let update = said(&[("LogPrefix", "mine"), ("InterfacePrefix", "*")]);
        last_good.set_datastore(update);
        assert!(last_good.refused().unwrap().contains("InterfacePrefix"));
        assert_eq!(last_good.config().policy.log.prefix, "mine");
        assert_eq!(last_good.config().interfaces, local().config().interfaces);
    }

    #[test]
    fn a_configuration_that_did_not_start_is_not_tried_again_until_it_changes() {
        let mut last_good = local();
        last_good.set_datastore(said(&[("LogPrefix", "one")]));
        let before = last_good.config().clone();
        last_good.set_datastore(said(&[("LogPrefix", "two")]));
        let error = || Error::Configuration("no such program".to_owned());
        last_good.revert(error()).unwrap();
        assert_eq!(*last_good.config(), before);
        last_good.set_datastore(said(&[("LogPrefix", "two")]));
        assert_eq!(*last_good.config(), before);
        assert!(last_good.refused().unwrap().contains("no such program"));
        assert!(
            last_good.revert(error()).is_err(),
            "there is nothing before it"
        );
        last_good.set_datastore(said(&[("LogPrefix", "three")]));
        assert_eq!(last_good.config().policy.log.prefix, "three");
        assert_eq!(last_good.refused(), None);
    }

    #[test]
    fn what_the_machine_itself_says_must_be_right() {
        let environment = BTreeMap::from([("interfaceprefix".to_owned(), "*".to_owned())]);
        let error = LastGood::new(environment, BTreeMap::new(), false).unwrap_err();
        assert!(error.to_string().contains("InterfacePrefix"), "{error}");
    }
}
