//! Times, counted in classes that are about a tenth wide.

const CLASSES: usize = 256;

/// Classes per doubling.
const FINENESS: f64 = 8.0;

#[derive(Clone)]
pub(crate) struct Histogram {
    counts: [u64; CLASSES],
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: [0; CLASSES],
        }
    }
}

impl Histogram {
    pub(crate) fn add(&mut self, micros: f64) {
        let class = micros.max(1.0).log2() * FINENESS;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "logarithms of at least one are small and not negative"
        )]
        let class = class as usize;
        self.counts[class.min(CLASSES - 1)] += 1;
    }

    pub(crate) fn join(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// So many of a thousand are at most this, in milliseconds.
    pub(crate) fn quantile(&self, thousandths: u64) -> f64 {
        let rank = (self.count() * thousandths).div_ceil(1000);
        let mut below = 0;
        for (class, count) in (0_u32..).zip(self.counts) {
            below += count;
            if below >= rank.max(1) {
                return (f64::from(class + 1) / FINENESS).exp2() / 1000.0;
            }
        }
        0.0
    }
}
