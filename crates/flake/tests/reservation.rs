//! Reservations: which words they cover, when they are renewed, and how long their windows are.

mod common;

use common::{Shape, forall, formats, nanos, number};
use flake::{IdFormat, Limits, MAX_WINDOW, MIN_WINDOW, Nanos, Reservation, next_window};
use proptest::prelude::*;

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MS;
const YEAR: Nanos = 365 * 86_400 * SECOND;

#[derive(Clone, Copy, Debug)]
struct ReservationCase {
    shape: Shape,
    format: IdFormat,
    now: Nanos,
    needed: u64,
    window: Nanos,
}

impl ReservationCase {
    fn reservation(&self) -> Reservation {
        Reservation::new(&Limits::of(&self.format), self.now, self.needed, self.window)
    }

    fn capacity(&self) -> u128 {
        self.shape.capacity().into()
    }

    /// The word after the last one.
    fn end(&self) -> u128 {
        self.shape.words().into()
    }

    /// The first word of the tick at `at`. The time can be one that no clock can show, or one past the end of the layout.
    fn word_at(&self, at: u128) -> u128 {
        let since_epoch = at.saturating_sub(u128::from(self.format.epoch.unix_ms() as u64) * u128::from(MS));
        since_epoch / u128::from(nanos(self.shape.tick)) * self.capacity()
    }

    /// The time at which the tick of a word begins.
    fn time(&self, word: u128) -> u128 {
        let epoch = u128::from(self.format.epoch.unix_ms() as u64) * u128::from(MS);
        epoch + word / self.capacity() * u128::from(nanos(self.shape.tick))
    }
}

fn windows() -> impl Strategy<Value = Nanos> {
    prop_oneof![Just(0), Just(MIN_WINDOW), Just(MAX_WINDOW), MIN_WINDOW..=MAX_WINDOW]
}

/// `needed` is often near the clock, as in real cases, and sometimes anywhere in the layout.
fn cases() -> impl Strategy<Value = ReservationCase> {
    formats().prop_flat_map(|(shape, format)| {
        let epoch = format.epoch.nanos();
        let after = prop_oneof![1 => 0..250 * YEAR, 8 => 0..100 * YEAR, 1 => 0..20 * SECOND];
        let before = (1..20 * SECOND).prop_map(move |by| epoch.saturating_sub(by));
        let now = prop_oneof![9 => after.prop_map(move |since| epoch + since), 1 => before];
        let near = -4 * shape.capacity() as i64..20_000 * shape.capacity().min(1 << 40) as i64;
        let anywhere = number(shape.timestamp + shape.sequence).prop_map(|word| word + 1);
        (now, near, anywhere, windows(), prop::bool::weighted(0.8)).prop_map(
            move |(now, near, anywhere, window, is_near)| {
                let case = ReservationCase { shape, format, now, needed: anywhere, window };
                let due = case.word_at(now.into()).min(case.end()) as u64;
                let needed = if is_near { due.saturating_add_signed(near).min(shape.words()) } else { anywhere };
                ReservationCase { needed, ..case }
            },
        )
    })
}

#[test]
fn a_reservation_covers_what_is_needed_and_its_window_and_is_renewed_when_half_of_it_is_used() {
    forall(2_000, cases(), |case| {
        let reservation = case.reservation();
        let (ceiling, renew) = (u128::from(reservation.ceiling), u128::from(reservation.renew));
        // A tick more than what is needed, and at least two ticks of the clock, but nothing behind the end.
        let spared = u128::from(case.needed) + case.capacity();
        prop_assert!(ceiling <= case.end());
        prop_assert!(ceiling >= spared.min(case.end()));
        prop_assert!(ceiling >= (case.word_at(case.now.into()) + 2 * case.capacity()).min(case.end()));
        prop_assert!(renew <= ceiling);
        // The window is counted from the clock, or from the tick of `needed` if that is later, and the reservation is no longer
        // than that.
        let from = case.time(case.needed.into()).max(case.now.into());
        let window = u128::from(case.window.max(2 * nanos(case.shape.tick)));
        // A time that does not fit is one that no clock shows, so its reservation is never used.
        if from + window < u64::MAX.into() {
            prop_assert_eq!(ceiling, case.word_at(from + window).max(spared).min(case.end()));
        }
        if from + window / 2 < u64::MAX.into() {
            prop_assert_eq!(renew, case.word_at(from + window / 2).min(ceiling));
        }
        Ok(())
    });
}

#[test]
fn windows_are_within_their_bounds_and_long_enough_for_the_next_extension() {
    let durations = || prop_oneof![Just(0), 0..=2 * MAX_WINDOW, any::<Nanos>()];
    forall(2_000, (windows(), durations(), durations()), |(window, late, took)| {
        let next = next_window(window, late, took);
        prop_assert!((MIN_WINDOW..=MAX_WINDOW).contains(&next));
        // So the next extension takes at most the first quarter of the window.
        prop_assert!(u128::from(next) >= (4 * u128::from(took)).min(MAX_WINDOW.into()));
        Ok(())
    });
}

#[test]
fn windows_double_when_renewed_late_and_halve_when_renewed_in_time() {
    const S: Nanos = SECOND;
    // The window, how late it was renewed, how long that took, and the next window.
    for (window, late, took, next) in [
        (0, 0, 0, S),
        (0, u64::MAX, 0, S),
        (S, S / 10, 0, S),
        (S, S / 10 + 1, 0, 2 * S),
        (2 * S, S / 5, 0, S),
        (2 * S, S / 5 + 1, 0, 4 * S),
        (8 * S, 8 * S, 0, 10 * S),
        (10 * S, u64::MAX, 0, 10 * S),
        (10 * S, S, 0, 5 * S),
        (5 * S, 0, 0, 5 * S / 2),
        (3 * S / 2, 0, 0, S),
        // A slow disk or standby.
        (S, 0, S / 4, S),
        (S, 0, S / 2, 2 * S),
        (0, 0, S / 2, 2 * S),
        (4 * S, 4 * S, S, 8 * S),
        (S, 0, 3 * S, 10 * S),
        (S, 0, u64::MAX, 10 * S),
    ] {
        assert_eq!(next_window(window, late, took), next, "{window} {late} {took}");
    }
}

#[test]
fn windows_of_the_shortest_and_longest_are_a_second_and_ten() {
    // The documentation says how far ahead a server can begin after a crash, and how often it flushes under load.
    assert_eq!((MIN_WINDOW, MAX_WINDOW), (SECOND, 10 * SECOND));
}
