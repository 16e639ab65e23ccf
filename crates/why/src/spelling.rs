//! What somebody may have meant by a name that is not there.

/// How many suggestions an error makes.
const MOST: usize = 3;

/// The known names that are nearest to the one asked for, the nearest first: those that differ by few characters, and
/// those that start with it, as names of a Deployment's pods start with its name.
pub(crate) fn nearest<'a>(asked: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let asked = asked.to_ascii_lowercase();
    let allowed = 1 + asked.chars().count() / 5;
    let near = known.filter_map(|name| {
        let lower = name.to_ascii_lowercase();
        if !asked.is_empty() && lower.starts_with(&asked) {
            return Some((distance(&lower, &asked).min(1), name));
        }
        if lower.len().abs_diff(asked.len()) > allowed {
            return None;
        }
        let distance = distance(&lower, &asked);
        (distance <= allowed).then_some((distance, name))
    });
    first(near.collect())
}

/// The known names that are nearest to the one asked for, however far they are.
pub(crate) fn closest<'a>(asked: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let asked = asked.to_ascii_lowercase();
    let all = known.map(|name| (distance(&name.to_ascii_lowercase(), &asked), name));
    first(all.collect())
}

/// The first few, by distance and then by name.
fn first(mut found: Vec<(usize, &str)>) -> Vec<&str> {
    found.sort_unstable();
    found.dedup();
    found.truncate(MOST);
    found.into_iter().map(|(_, name)| name).collect()
}

/// `; did you mean a, b or c?`, or nothing.
pub(crate) fn did_you_mean<S: AsRef<str>>(suggestions: &[S]) -> String {
    if suggestions.is_empty() {
        return String::new();
    }
    format!("; did you mean {}?", any_of(suggestions))
}

/// `a, b or c`.
pub(crate) fn any_of<S: AsRef<str>>(names: &[S]) -> String {
    joined(names, "or")
}

/// `a, b and c`.
pub(crate) fn all_of<S: AsRef<str>>(names: &[S]) -> String {
    joined(names, "and")
}

fn joined<S: AsRef<str>>(names: &[S], word: &str) -> String {
    let quoted: Vec<String> = names
        .iter()
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} {word} {last}", others.join(", ")),
        None => String::new(),
    }
}

/// How many characters must be put in, taken out, changed or swapped with their neighbour to make one text of the
/// other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first() {
        let known = ["web-1", "web", "wxb", "database", "webhook-7f9"];
        assert_eq!(nearest("wbe", known.into_iter()), ["web"]);
        assert_eq!(nearest("bwe", known.into_iter()), Vec::<&str>::new());
        assert_eq!(closest("bwe", known.into_iter())[0], "web");
        assert_eq!(nearest("wxb", known.into_iter()), ["wxb", "web"]);
        assert_eq!(
            nearest("WEB", known.into_iter()),
            ["web", "web-1", "webhook-7f9"]
        );
        assert_eq!(nearest("databse", known.into_iter()), ["database"]);
    }

    #[test]
    fn suggestions_are_sentences() {
        assert_eq!(did_you_mean::<&str>(&[]), "");
        assert_eq!(did_you_mean(&["a"]), "; did you mean `a`?");
        assert_eq!(
            did_you_mean(&["a", "b", "c"]),
            "; did you mean `a`, `b` or `c`?"
        );
    }
}
