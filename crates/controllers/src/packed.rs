//! Several texts in one piece of memory, for what there are many of.

/// So many texts with a known end each, and one more behind them.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Packed<const HEAD: usize> {
    text: Box<str>,
    ends: [u32; HEAD],
}

impl<const HEAD: usize> Packed<HEAD> {
    pub(crate) fn new(head: [&str; HEAD], tail: &str) -> Self {
        let length = head.iter().map(|part| part.len()).sum::<usize>() + tail.len();
        let mut text = String::with_capacity(length);
        let ends = head.map(|part| {
            text.push_str(part);
            // Nothing of four gigabytes comes this far.
            u32::try_from(text.len()).unwrap_or_default()
        });
        text.push_str(tail);
        Self {
            text: text.into_boxed_str(),
            ends,
        }
    }

    /// One of the first texts.
    pub(crate) fn head(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.end(before));
        self.text.get(start..self.end(index)).unwrap_or_default()
    }

    /// The text behind them.
    pub(crate) fn tail(&self) -> &str {
        let start = HEAD.checked_sub(1).map_or(0, |last| self.end(last));
        self.text.get(start..).unwrap_or_default()
    }

    fn end(&self, index: usize) -> usize {
        self.ends.get(index).map_or(0, |end| *end as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_out_as_they_went_in() {
        for parts in [
            ["", "", ""],
            ["a", "", "b"],
            ["ä", "bc", ""],
            ["", "x", "yz"],
        ] {
            for tail in ["", "the rest"] {
                let packed = Packed::new(parts, tail);
                assert_eq!([0, 1, 2].map(|index| packed.head(index)), parts);
                assert_eq!(packed.tail(), tail);
            }
        }
        assert_eq!(Packed::new([], "all").tail(), "all");
    }
}
