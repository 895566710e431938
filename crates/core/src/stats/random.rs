//! Reproducible pseudo-random numbers.

/// A generator of pseudo-random numbers, which are the same for the same seed on every machine (SplitMix64).
#[derive(Debug, Clone)]
pub struct SeededRandom {
    state: u64,
}

impl SeededRandom {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Gives a number from 0 up to but not including 1.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Gives a random index below `length`; 0 if `length` is 0.
    pub fn position(&mut self, length: usize) -> usize {
        (self.fraction() * length as f64) as usize
    }

    /// Gives true with this chance.
    pub fn happens(&mut self, chance: f64) -> bool {
        self.fraction() < chance
    }

    /// Gives the number of successes in `runs` trials, each with this chance.
    pub fn successes(&mut self, runs: u64, chance: f64) -> u64 {
        (0..runs).filter(|_| self.happens(chance)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_in_range() {
        // The published first outputs of SplitMix64 for the seed 0.
        let mut random = SeededRandom::new(0);
        assert_eq!((random.bits(), random.bits()), (0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4));
        let mut random = SeededRandom::new(7);
        let shares: Vec<f64> = (0..10_000).map(|_| random.fraction()).collect();
        assert!(shares.iter().all(|share| (0.0..1.0).contains(share)));
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        assert!((0..1000).all(|_| random.position(3) < 3));
    }
}
