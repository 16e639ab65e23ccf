//! The random numbers of Go's `math/rand` with a given seed, so that a host looks for free blocks in the order in which
//! Calico does.

use std::sync::LazyLock;

const LENGTH: usize = 607;
const TAP: usize = 273;

/// The generator that seeds the other one works modulo this prime.
const MODULUS: i64 = (1 << 31) - 1;

/// With what the generator starts: its own state after 7.8 · 10¹² steps from the seed 1, as hexadecimal numbers.
static COOKED: LazyLock<[u64; LENGTH]> = LazyLock::new(|| {
    let mut state = [0; LENGTH];
    let numbers = include_str!("go_rand/cooked.txt").split_ascii_whitespace();
    for (word, number) in state.iter_mut().zip(numbers) {
        *word = u64::from_str_radix(number, 16).expect("the file holds nothing else");
    }
    state
});

/// An additive lagged Fibonacci generator.
pub(crate) struct GoRand {
    state: Box<[u64; LENGTH]>,
    tap: usize,
    feed: usize,
}

impl GoRand {
    pub(crate) fn new(seed: i64) -> Self {
        let mut x = match seed.rem_euclid(MODULUS) {
            0 => 89_482_311,
            x => x,
        };
        let mut next = || {
            x = x * 48_271 % MODULUS;
            x.cast_unsigned()
        };
        for _ in 0..20 {
            next();
        }
        let mut state = Box::new(*COOKED);
        for word in state.iter_mut() {
            *word ^= next() << 40 ^ next() << 20 ^ next();
        }
        Self {
            state,
            tap: 0,
            feed: LENGTH - TAP,
        }
    }

    fn next_u64(&mut self) -> u64 {
        let before = |at: usize| at.checked_sub(1).unwrap_or(LENGTH - 1);
        (self.tap, self.feed) = (before(self.tap), before(self.feed));
        self.state[self.feed] = self.state[self.feed].wrapping_add(self.state[self.tap]);
        self.state[self.feed]
    }

    /// As Go's `Uint32`.
    fn next_u32(&mut self) -> u64 {
        (self.next_u64() << 1) >> 32
    }

    /// A number below 2 to the power of `bits`, which is at most 128, drawn as Go's big integers draw it: with one bit
    /// more, and again until that bit is not set.
    pub(crate) fn below_power_of_two(&mut self, bits: u32) -> u128 {
        loop {
            let mut value = 0_u128;
            let mut is_below = true;
            for word in 0..=bits / 64 {
                let drawn = self.next_u32() | self.next_u32() << 32;
                if word == bits / 64 {
                    let top = drawn
                        & (1_u64
                            .checked_shl(bits % 64 + 1)
                            .map_or(u64::MAX, |bit| bit - 1));
                    is_below = top >> (bits % 64) == 0;
                    value |= u128::from(top).checked_shl(64 * word).unwrap_or(0);
                } else {
                    value |= u128::from(drawn) << (64 * word);
                }
            }
            if is_below {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests;
