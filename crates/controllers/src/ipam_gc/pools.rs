//! Which pool each block is in. Readings are told by pool.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use tortie_api::net::{Cidr, parse_cidr};
use tortie_api::{IpPool, IpReservation};
use tortie_ipam::reservations::Reservations;

/// Stands for the pool of blocks that are in none.
pub(super) const NO_POOL: &str = "no_ippool";

/// Pools, their blocks, and what is reserved of them.
#[derive(Debug, Default)]
pub(super) struct Pools {
    nets: BTreeMap<String, IpNet>,
    of_block: BTreeMap<IpNet, String>,
    reservations: BTreeMap<String, IpReservation>,
}

impl Pools {
    /// Takes in a pool; one that is being deleted counts as gone.
    pub(super) fn set(&mut self, pool: &IpPool) {
        let name = &pool.metadata.name;
        let net = parse_cidr(&pool.spec.cidr).map(Cidr::network);
        match net.filter(|_| pool.metadata.deletion_timestamp.is_none()) {
            None => self.remove(name),
            Some(net) => {
                if self.nets.insert(name.clone(), net) != Some(net) {
                    self.file_all();
                }
            }
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        if self.nets.remove(name).is_some() {
            self.file_all();
        }
    }

    pub(super) fn set_reservation(&mut self, reservation: IpReservation) {
        let name = reservation.metadata.name.clone();
        self.reservations.insert(name, reservation);
    }

    pub(super) fn remove_reservation(&mut self, name: &str) {
        self.reservations.remove(name);
    }

    pub(super) fn add_block(&mut self, block: IpNet) {
        if !self.of_block.contains_key(&block) {
            let pool = self.containing(block);
            self.of_block.insert(block, pool);
        }
    }

    pub(super) fn remove_block(&mut self, block: IpNet) {
        self.of_block.remove(&block);
    }

    /// The pool that a block is in.
    pub(super) fn of_block(&self, block: IpNet) -> &str {
        self.of_block.get(&block).map_or(NO_POOL, String::as_str)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, IpNet)> {
        self.nets.iter().map(|(name, net)| (name.as_str(), *net))
    }

    /// All pools there are readings for.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        let known = self.nets.keys().chain(self.of_block.values());
        known.map(String::as_str).collect()
    }

    pub(super) fn reserved(&self) -> Reservations {
        Reservations::new(self.reservations.values())
    }

    fn containing(&self, block: IpNet) -> String {
        let pool = self.nets.iter().find(|(_, net)| net.contains(&block));
        pool.map_or(NO_POOL, |(name, _)| name).to_owned()
    }

    fn file_all(&mut self) {
        let blocks: Vec<IpNet> = self.of_block.keys().copied().collect();
        for block in blocks {
            let pool = self.containing(block);
            self.of_block.insert(block, pool);
        }
    }
}
