use super::*;

/// A step of the generator that made the table: a polynomial over numbers of 64 bits, modulo the one that says how a
/// number follows from the 607 before it.
fn multiply(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut product = vec![0_u64; 2 * LENGTH - 1];
    for (i, a) in a.iter().enumerate().filter(|(_, a)| **a != 0) {
        for (j, b) in b.iter().enumerate() {
            product[i + j] = product[i + j].wrapping_add(a.wrapping_mul(*b));
        }
    }
    for i in (LENGTH..product.len()).rev() {
        let carried = std::mem::take(&mut product[i]);
        product[i - LENGTH] = product[i - LENGTH].wrapping_add(carried);
        product[i - TAP] = product[i - TAP].wrapping_add(carried);
    }
    product.truncate(LENGTH);
    product
}

#[test]
fn the_table_is_the_state_of_the_generator_after_its_many_steps() {
    // The sequence as it begins, oldest number first.
    let mut x = 1_i64;
    let mut next = || {
        x = x * 48_271 % MODULUS;
        x.cast_unsigned()
    };
    for _ in 0..20 {
        next();
    }
    let state: Vec<u64> = (0..LENGTH)
        .map(|_| next() << 20 ^ next() << 10 ^ next())
        .collect();
    // The feed moves downwards from `LENGTH - TAP`: that is where the oldest number is.
    let at = |age: usize| (LENGTH - TAP - 1 + LENGTH - age) % LENGTH;
    let sequence: Vec<u64> = (0..LENGTH).map(|age| state[at(age)]).collect();

    let steps: u64 = 7_800_000_000_000;
    let mut power = vec![0; LENGTH];
    power[0] = 1;
    let shift = {
        let mut x = vec![0; LENGTH];
        x[1] = 1;
        x
    };
    for bit in (0..64 - steps.leading_zeros()).rev() {
        power = multiply(&power, &power);
        if steps >> bit & 1 == 1 {
            power = multiply(&shift, &power);
        }
    }
    let offset = usize::try_from(steps % LENGTH as u64).unwrap();
    for age in (0..LENGTH).step_by(97) {
        let number = power
            .iter()
            .zip(&sequence)
            .fold(0_u64, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)));
        assert_eq!(
            COOKED[(at(age) + LENGTH - offset) % LENGTH],
            number,
            "{age}"
        );
        for _ in 0..97 {
            power = multiply(&shift, &power);
        }
    }
}

#[test]
fn first_numbers_are_those_of_go() {
    // rand.New(rand.NewSource(1)).Int63()
    let mut random = GoRand::new(1);
    assert_eq!(
        random.next_u64() >> 1 << 1 & !(1 << 63),
        0x4d65_8221_07fc_fd52 & !1
    );
    // rand.New(rand.NewSource(3957252814)), big.Int.Rand below 1024: see the walk's tests for others.
    assert_eq!(GoRand::new(3_957_252_814).below_power_of_two(10), 666);
}
