//! The order in which a host looks at the blocks of a pool: all of them once, from a place that its name decides.

use ipnet::IpNet;

use crate::go_rand::GoRand;
use crate::nets;

/// The blocks of one pool.
pub struct Walk {
    pool: IpNet,
    prefix: u8,
    /// The number of blocks is 2 to this power.
    bits: u32,
    next: u128,
    left: u128,
}

impl Walk {
    /// Starts at the place of the host. Blocks of one address start anywhere, as the time decides: there are so many of
    /// them that hosts would meet.
    pub fn new(pool: IpNet, prefix: u8, host: &str, nanoseconds: i64) -> Self {
        let bits = u32::from(prefix.saturating_sub(pool.prefix_len()));
        let is_too_small = prefix < pool.prefix_len() || prefix > pool.max_prefix_len();
        let seed = if prefix == pool.max_prefix_len() {
            nanoseconds
        } else {
            i64::from(fnv1(host.as_bytes()))
        };
        let next = GoRand::new(seed).below_power_of_two(bits);
        let left = if is_too_small {
            0
        } else {
            1_u128.checked_shl(bits).unwrap_or(u128::MAX)
        };
        Self {
            pool: pool.trunc(),
            prefix,
            bits,
            next,
            left,
        }
    }
}

impl Iterator for Walk {
    type Item = IpNet;

    fn next(&mut self) -> Option<IpNet> {
        self.left = self.left.checked_sub(1)?;
        let size = 1_u128.checked_shl(u32::from(self.pool.max_prefix_len() - self.prefix))?;
        let base = nets::nth(self.pool, self.next.wrapping_mul(size));
        self.next = self.next.wrapping_add(1);
        if self.bits < 128 {
            self.next &= (1 << self.bits) - 1;
        }
        IpNet::new(base, self.prefix).ok()
    }
}

/// All blocks of a prefix length in a network, in order.
pub fn blocks_in(net: IpNet, prefix: u8) -> impl Iterator<Item = IpNet> {
    let mut walk = Walk::new(net, prefix, "", 0);
    walk.next = 0;
    walk
}

/// The hash FNV-1 of 32 bits.
fn fnv1(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| {
        hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[track_caller]
    fn check_first(host: &str, index: u128) {
        let pool = "10.0.0.0/16".parse().unwrap();
        let first = Walk::new(pool, 26, host, 0).next().unwrap();
        assert_eq!(
            nets::ordinal(pool, first.addr()),
            Some(index * 64),
            "{host}"
        );
    }

    #[test]
    fn hosts_start_where_those_of_calico_do() {
        check_first("node1", 666);
        check_first("node-a", 698);
        check_first("k8s-worker-1", 920);
    }

    #[test]
    fn every_block_is_seen_once() {
        for (pool, prefix, count) in [
            ("10.0.0.0/24", 26, 4),
            ("10.0.0.0/26", 26, 1),
            ("10.0.0.0/27", 32, 32),
            ("fd00::/116", 122, 64),
            ("10.0.0.0/27", 26, 0),
        ] {
            let pool: IpNet = pool.parse().unwrap();
            let blocks: Vec<IpNet> = Walk::new(pool, prefix, "h", 7).collect();
            let distinct: BTreeSet<_> = blocks.iter().collect();
            assert_eq!((blocks.len(), distinct.len()), (count, count), "{pool}");
            assert!(blocks.iter().all(|block| pool.contains(block)));
        }
    }

    #[test]
    fn the_largest_pools_do_not_overflow() {
        let all = "::/0".parse().unwrap();
        assert!(Walk::new(all, 128, "h", 1).take(5).count() == 5);
        assert!(Walk::new(all, 122, "h", 1).take(5).count() == 5);
        let blocks: Vec<IpNet> = blocks_in("10.0.0.0/24".parse().unwrap(), 26).collect();
        assert!(blocks.is_sorted() && blocks.len() == 4);
    }
}
