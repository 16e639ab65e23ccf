//! The settings that all nodes share.

use tortie_api::ipam_configuration::IpamConfigurationSpec;
use tortie_store::{Error as StoreError, Key, Kind, Resource};

use super::{Ipam, MAX_TRIES, is_lost_race};
use crate::config::{CONFIG_NAME, check_config, config_object, default_config};
use crate::error::{Error, Result};

impl Ipam {
    /// What is configured, or else what holds without.
    pub async fn configuration(&self) -> Result<IpamConfigurationSpec> {
        Ok(match self.read_config().await? {
            Some(Resource::IpamConfiguration(config)) => config.spec,
            _ => default_config(),
        })
    }

    /// Changes the settings, unless they contradict each other.
    pub async fn set_configuration(&self, spec: &IpamConfigurationSpec) -> Result<()> {
        for _ in 0..MAX_TRIES {
            let (written, current) = match self.read_config().await? {
                Some(Resource::IpamConfiguration(mut config)) => {
                    let current = std::mem::replace(&mut config.spec, spec.clone());
                    (Some(config), current)
                }
                _ => (None, default_config()),
            };
            if current == *spec {
                return Ok(());
            }
            check_config(spec)?;
            let result = match written {
                Some(config) => self.store().update((*config).into()).await,
                None => {
                    self.store()
                        .create(config_object(spec.clone()).into())
                        .await
                }
            };
            match result {
                Ok(_) => {
                    self.forget_world();
                    return Ok(());
                }
                Err(error) if is_lost_race(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::TooMuchContention)
    }

    async fn read_config(&self) -> Result<Option<Resource>> {
        let key = Key::global(Kind::IpamConfiguration, CONFIG_NAME);
        match self.store().get(&key).await {
            Ok(resource) => Ok(Some(resource)),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
