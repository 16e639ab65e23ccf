//! Items of a list that it holds already.

use std::collections::HashSet;
use std::hash::Hash;

/// The items that are equal to one before them, with their places. Costs what the list holds, not its square: lists of
/// networks have hundreds of thousands of items.
pub(crate) fn repeated<T: Eq + Hash>(list: &[T]) -> impl Iterator<Item = (usize, &T)> {
    let mut seen = HashSet::with_capacity(list.len());
    let items = list.iter().enumerate();
    items.filter(move |(_, item)| !seen.insert(*item))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::Hasher;

    use super::*;

    /// Counts how often it is compared.
    struct Counted<'a>(u32, &'a Cell<usize>);

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.set(self.1.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted<'_> {}

    impl Hash for Counted<'_> {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    #[test]
    fn all_but_the_first_of_equal_items_are_repeated() {
        let list = ["a", "b", "a", "c", "b", "a"];
        let found: Vec<_> = repeated(&list).collect();
        assert_eq!(found, [(2, &"a"), (4, &"b"), (5, &"a")]);
    }

    #[test]
    fn items_are_compared_with_few_others() {
        for length in [1_000, 20_000] {
            let comparisons = Cell::new(0);
            let list: Vec<_> = (0..length)
                .map(|number| Counted(number, &comparisons))
                .collect();
            assert_eq!(repeated(&list).count(), 0);
            assert!(comparisons.get() <= list.len(), "{}", comparisons.get());
        }
    }
}
