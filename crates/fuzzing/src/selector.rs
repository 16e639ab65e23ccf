//! Selectors: no text makes the parser panic, and what parses keeps its meaning when printed.

use tortie_selector::Selector;

use crate::text;

const LABELS: [(&str, &str); 3] = [("a", "b"), ("c", ""), ("in", "not in")];

/// Checks it with these bytes, and panics if it does not hold.
pub fn check(data: &[u8]) {
    let text = text(data);
    let selector = match Selector::parse(text) {
        Ok(selector) => selector,
        Err(error) => {
            assert_eq!(error.caret(text).lines().count(), 2);
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let again = Selector::parse(selector.as_str()).expect("canonical text is a selector");
    // Doubled negations are the one thing that reading canonical text changes.
    if !selector.as_str().contains("!!") {
        assert_eq!(again, selector);
    }
    let settled = Selector::parse(again.as_str()).expect("canonical text is a selector");
    assert_eq!(settled, again);

    let matches = selector.matches(&LABELS);
    assert_eq!(again.matches(&LABELS), matches);
    assert_eq!(selector.first_failing_term(&LABELS).is_none(), matches);
    assert!(!matches || selector.label_restrictions().allow(&LABELS));

    let prefixed = selector.prefix_labels("pcns.");
    let labels = LABELS.map(|(name, value)| (format!("pcns.{name}"), value));
    assert_eq!(prefixed.matches(&labels), matches);
}
