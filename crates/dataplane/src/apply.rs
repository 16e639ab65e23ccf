//! The world and its drivers together: what is said goes in, and the kernel follows.

use std::collections::BTreeMap;
use std::sync::Arc;

use tortie_engine::Message;
use tortie_rules::{Config, Dataplane as Kind, IpVersion};

use crate::change::{Batch, Drift, Driver, Error};
use crate::world::{InterfaceState, World};

/// Brings what the engine says into the kernel, and keeps it there.
///
/// Nothing is written before the first call to [`Dataplane::apply`], which the caller makes once all is known that was
/// there at the start. That first time, and after an error, all is compared and what is left over removed.
pub struct Dataplane {
    world: World,
    drivers: Vec<(IpVersion, Box<dyn Driver>)>,
    /// The kernel may not have what we think it has.
    is_uncertain: bool,
}

/// How much was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Whether everything was compared.
    pub is_full: bool,
    /// Chains that were written.
    pub chains: usize,
    /// Sets that were changed.
    pub sets: usize,
}

impl Dataplane {
    /// A data plane in which nothing has been said.
    pub fn new(
        config: &Arc<Config>,
        kind: Kind,
        drivers: Vec<(IpVersion, Box<dyn Driver>)>,
        hostname: &str,
    ) -> Self {
        let versions: Vec<IpVersion> = drivers.iter().map(|(version, _)| *version).collect();
        Self {
            world: World::new(config, kind, &versions, hostname),
            drivers,
            is_uncertain: true,
        }
    }

    /// All that was said.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The engine says something.
    pub fn on_message(&mut self, message: Message) {
        self.world.on_message(message);
    }

    /// The interfaces of the host are these now.
    pub fn set_interfaces(&mut self, all: BTreeMap<Arc<str>, InterfaceState>) {
        self.world.set_interfaces(all);
    }

    /// Renders with other parameters from now on.
    pub fn set_config(&mut self, config: &Arc<Config>) {
        self.world.set_config(config);
        self.is_uncertain = true;
    }

    /// Brings all that was said into the kernel. After an error the next call compares everything.
    pub fn apply(&mut self) -> Result<Done, Error> {
        let batches = if self.is_uncertain {
            self.world.take_everything()
        } else {
            self.world.take_changes()
        };
        let was_uncertain = std::mem::replace(&mut self.is_uncertain, true);
        let mut done = Done {
            is_full: was_uncertain,
            ..Done::default()
        };
        for (version, batch) in &batches {
            let driver = self.drivers.iter_mut().find(|(of, _)| of == version);
            if let Some((_, driver)) = driver {
                driver.apply(batch)?;
                done.chains += batch.chains.len();
                done.sets += batch.sets.len();
            }
        }
        self.is_uncertain = false;
        Ok(done)
    }

    /// Looks whether the kernel still has what was applied. If not, the next [`Dataplane::apply`] repairs it.
    pub fn check(&mut self) -> Result<Vec<Drift>, Error> {
        let mut all = Vec::new();
        for (_, driver) in &mut self.drivers {
            all.extend(driver.check()?);
        }
        self.is_uncertain |= !all.is_empty();
        Ok(all)
    }

    /// Compares the kernel with what was said, and changes nothing.
    pub fn compare(&mut self) -> Result<Vec<Drift>, Error> {
        self.is_uncertain = true;
        let mut all = Vec::new();
        for (version, batch) in self.world.take_everything() {
            let driver = self.drivers.iter_mut().find(|(of, _)| *of == version);
            if let Some((_, driver)) = driver {
                all.extend(driver.compare(&batch)?);
            }
        }
        Ok(all)
    }

    /// All that the kernel should have, for each IP version. The next [`Dataplane::apply`] compares everything.
    pub fn everything(&mut self) -> Vec<(IpVersion, Batch)> {
        self.is_uncertain = true;
        self.world.take_everything()
    }
}
