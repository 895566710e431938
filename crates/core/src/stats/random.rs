//! Reproducible pseudo-random numbers.

/// A generator of pseudo-random numbers, which are the same for the same seed on every machine (SplitMix64).
#[derive(Debug, Clone)]
pub struct SeededRandom {
    state: u64,
}

impl SeededRandom {
    /// Makes a generator whose numbers depend only on the seed.
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

    /// Gives a standard normal number (Box and Muller's method).
    pub fn normal(&mut self) -> f64 {
        let size = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        size * (std::f64::consts::TAU * self.fraction()).cos()
    }

    /// Gives the logarithm of a number from a gamma distribution with this shape, which has to be positive (Marsaglia
    /// and Tsang's method). The number itself may be too small to represent.
    pub fn log_gamma(&mut self, shape: f64) -> f64 {
        let (shape, boost) =
            if shape < 1.0 { (shape + 1.0, (1.0 - self.fraction()).ln() / shape) } else { (shape, 0.0) };
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && (1.0 - self.fraction()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return (d * v).ln() + boost;
            }
        }
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
        for shape in [0.05, 1.0, 7.5] {
            let mean = (0..40_000).map(|_| random.log_gamma(shape).exp()).sum::<f64>() / 40_000.0;
            assert!((mean - shape).abs() < 5.0 * (shape / 40_000.0).sqrt(), "{shape}: {mean}");
        }
    }
}
