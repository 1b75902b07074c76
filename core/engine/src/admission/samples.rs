//! Latencies in a log-linear histogram: two significant digits, 90 bins a decade, quantiles interpolated in a bin.

/// Bins of a decade: 1.0 to 9.9.
const DECADE: usize = 90;
/// From a tenth of a microsecond's resolution to 99 * 10^8 µs, which is 2.7 hours.
const DECADES: usize = 10;

/// Whole microseconds.
pub(super) struct Samples {
    zeros: u32,
    bins: Box<[u32]>,
    count: u64,
}

impl Default for Samples {
    fn default() -> Self {
        Self { zeros: 0, bins: vec![0; DECADE * DECADES].into_boxed_slice(), count: 0 }
    }
}

impl Samples {
    pub(super) fn add(&mut self, us: u64) {
        self.count += 1;
        if us == 0 {
            self.zeros = self.zeros.saturating_add(1);
            return;
        }
        // In tenths of a microsecond, so that the two digits of 1 to 9 µs exist too.
        let (mut digits, mut decade) = (us.saturating_mul(10), 0);
        while digits >= 100 {
            digits /= 10;
            decade += 1;
        }
        let at = if decade < DECADES { decade * DECADE + digits as usize - 10 } else { self.bins.len() - 1 };
        self.bins[at] = self.bins[at].saturating_add(1);
    }

    pub(super) fn len(&self) -> u64 {
        self.count
    }

    pub(super) fn clear(&mut self) {
        (self.zeros, self.count) = (0, 0);
        self.bins.fill(0);
    }

    /// The latency that this share of the samples does not exceed, in microseconds; 0 without samples.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let wanted = self.count as f64 * share;
        let mut below = f64::from(self.zeros);
        if self.count == 0 || (wanted <= below && self.zeros > 0) {
            return 0.0;
        }
        let mut upper = 0.0;
        for (at, bin) in self.bins.iter().enumerate().filter(|(_, bin)| **bin > 0) {
            let width = 10_f64.powi((at / DECADE) as i32 - 1);
            let left = (at % DECADE + 10) as f64 * width;
            let inside = (wanted - below) / f64::from(*bin);
            if inside <= 1.0 {
                return left + inside.max(0.0) * width;
            }
            below += f64::from(*bin);
            upper = left + width;
        }
        upper
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_five_percent() {
        for us in [1_u64, 7, 10, 99, 100, 13_000, 999_999, 3_600_000_000] {
            let mut samples = Samples::default();
            for _ in 0..9 {
                samples.add(us);
            }
            for share in [0.0, 0.5, 0.99, 1.0] {
                let found = samples.quantile(share);
                assert!((found / us as f64 - 1.0).abs() < 0.101, "{us} at {share}: {found}");
            }
            assert!((samples.quantile(0.5) / us as f64 - 1.0).abs() < 0.051, "{us}");
        }
        let mut samples = Samples::default();
        assert_eq!(samples.quantile(0.5), 0.0);
        for us in 1..=1000 {
            samples.add(us * 100);
        }
        assert!((samples.quantile(0.9) / 90_000.0 - 1.0).abs() < 0.02);
        samples.add(0);
        assert_eq!(samples.quantile(0.0), 0.0);
        samples.add(u64::MAX);
        assert!(samples.quantile(1.0) > 9e9);
        samples.clear();
        assert_eq!((samples.len(), samples.quantile(1.0)), (0, 0.0));
    }
}
