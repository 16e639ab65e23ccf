//! Programs against the selectors that they were compiled from.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::labels;

struct Packed(Vec<u8>);

impl LabelView for Packed {
    fn get(&self, name: u32) -> Option<&[u8]> {
        labels::get(&self.0, name)
    }

    fn for_each(&self, mut call: impl FnMut(u32, &[u8])) {
        for (name, value) in labels::iter(&self.0) {
            call(name, value);
        }
    }
}

fn any_selector() -> impl Strategy<Value = String> {
    let term = (
        prop::sample::select(vec!["a", "b", "c"]),
        prop::sample::select(vec![
            "== 'x'",
            "!= 'x'",
            "contains 'x'",
            "starts with 'x'",
            "ends with 'x'",
            "in {'x', 'y'}",
            "not in {'x', 'xy'}",
            "contains ''",
            "in {}",
        ]),
    );
    let leaf = prop_oneof![
        term.prop_map(|(label, condition)| format!("{label} {condition}")),
        Just("has(a)".to_owned()),
        Just("all()".to_owned()),
        Just("global()".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|all| format!("({})", all.join(" && "))),
            prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|all| format!("({})", all.join(" || "))),
            inner.prop_map(|operand| format!("!({operand})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_program_decides_as_its_selector(
        text in any_selector(),
        map in prop::collection::btree_map("[abd]", "[xy]{0,2}", 0..4),
    ) {
        let selector = Selector::parse(&text).expect("a selector");
        let mut names = Names::default();
        let program = compile(&selector, &mut names);
        let mut packed = Vec::new();
        labels::pack(&map, &mut names, &mut packed);
        let map: BTreeMap<String, String> = map;
        prop_assert_eq!(matches(&program, &Packed(packed.clone())), selector.matches(&map), "{}", text);

        release(&program, &mut names);
        labels::release(&packed, &mut names);
        prop_assert!(["a", "b", "c", "d"].iter().all(|name| names.find(name).is_none()));
    }
}
