//! The settings that all nodes share.

use tortie_api::IpamConfiguration;
use tortie_api::ipam_configuration::{IpamConfigurationSpec, VmAddressPersistence};

use crate::error::{Error, Result};

/// The name of the one object.
pub(crate) const CONFIG_NAME: &str = "default";

/// How many blocks a host may have where nothing is said.
const DEFAULT_MAX_BLOCKS: u32 = 20;

/// What holds where nothing was configured.
pub fn default_config() -> IpamConfigurationSpec {
    IpamConfigurationSpec {
        strict_affinity: false,
        max_blocks_per_host: 0,
        auto_allocate_blocks: true,
        kube_virt_vm_address_persistence: Some(VmAddressPersistence::Enabled),
        ip_cooldown_seconds: 0,
    }
}

/// Refuses settings that contradict each other.
pub fn check_config(config: &IpamConfigurationSpec) -> Result<()> {
    if !config.strict_affinity && !config.auto_allocate_blocks {
        return Err(Error::Configuration(
            "Cannot disable 'StrictAffinity' and 'AutoAllocateBlocks' at the same time",
        ));
    }
    if config.max_blocks_per_host > 0 && !config.strict_affinity {
        return Err(Error::Configuration(
            "MaxBlocksPerHost requires StrictAffinity to be enabled",
        ));
    }
    Ok(())
}

/// How many blocks a host may have: the smaller of what is configured and what is asked for, where both are given.
pub fn max_blocks(config: &IpamConfigurationSpec, requested: u32) -> u32 {
    let configured = u32::try_from(config.max_blocks_per_host).unwrap_or(0);
    match (configured, requested) {
        (0, 0) => DEFAULT_MAX_BLOCKS,
        (0, max) | (max, 0) => max,
        (configured, requested) => configured.min(requested),
    }
}

pub(crate) fn config_object(spec: IpamConfigurationSpec) -> IpamConfiguration {
    IpamConfiguration::new("", CONFIG_NAME, spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_must_not_contradict_each_other() {
        let config = default_config();
        assert!(check_config(&config).is_ok());
        let neither = IpamConfigurationSpec {
            auto_allocate_blocks: false,
            ..config.clone()
        };
        assert!(check_config(&neither).is_err());
        let limited = IpamConfigurationSpec {
            max_blocks_per_host: 3,
            ..config
        };
        assert!(check_config(&limited).is_err());
        let strict = IpamConfigurationSpec {
            strict_affinity: true,
            ..limited
        };
        assert!(check_config(&strict).is_ok());
    }

    #[test]
    fn the_smaller_limit_holds_and_without_one_there_are_twenty() {
        let configured = |max| IpamConfigurationSpec {
            max_blocks_per_host: max,
            ..default_config()
        };
        for (config, requested, expected) in
            [(0, 0, 20), (0, 5, 5), (5, 0, 5), (5, 3, 3), (3, 5, 3)]
        {
            assert_eq!(max_blocks(&configured(config), requested), expected);
        }
    }
}
