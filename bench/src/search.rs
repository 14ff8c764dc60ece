//! The search for the highest rate that a service reaches.

/// The bounds of a search.
#[derive(Clone, Copy)]
pub struct SearchBounds {
    /// The lowest and the highest rate that are tried.
    pub rates: (u64, u64),
    /// How many times the interval between a rate that is reached and one that is not is divided.
    pub steps: u64,
}

/// The factor between two rates until the interval is found: the square root of 2.
const FACTOR: f64 = std::f64::consts::SQRT_2;

/// Returns the highest rate that is reached, or 0 if not even the lowest one is. From `begin` on, rates are multiplied by [`FACTOR`] until
/// one is not reached, or divided by it until one is. Then the interval between the two is divided at its geometric mean. A rate that is
/// not reached is tried again, because a pause of the machine has nothing to do with the service.
pub fn highest(begin: u64, bounds: SearchBounds, mut reaches: impl FnMut(u64) -> bool) -> u64 {
    let (least, most) = bounds.rates;
    let mut reached = |rate| reaches(rate) || reaches(rate);
    let mut rate = begin.clamp(least, most);
    let (mut low, mut high) = (0, None);
    loop {
        if reached(rate) {
            low = rate;
            if high.is_some() || rate == most {
                break;
            }
            rate = ((rate as f64 * FACTOR).ceil() as u64).min(most);
        } else {
            high = Some(rate);
            if low > 0 || rate == least {
                break;
            }
            rate = ((rate as f64 / FACTOR) as u64).max(least);
        }
    }
    let (Some(mut high), true) = (high, low > 0) else { return low };
    for _ in 0..bounds.steps {
        let middle = (low as f64 * high as f64).sqrt() as u64;
        if reached(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
