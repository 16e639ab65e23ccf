//! Go templates, which are not there: what does the same.

use super::Template;

/// Why a Go template is refused, with the JSON path that does the same where that can be told.
pub(super) fn advice(form: &str, template: &str) -> String {
    let same = if form.ends_with("file") {
        None
    } else {
        translate(template)
    };
    match same {
        Some(path) => format!("Go templates are not supported; the same is -o jsonpath='{path}'"),
        None => {
            "Go templates are not supported; use -o jsonpath='{.items[*].metadata.name}' or -o \
                 custom-columns=NAME:.metadata.name,ORDER:.spec.order"
                .to_owned()
        }
    }
}

/// The JSON path of a template that has nothing but fields and ranges over lists.
fn translate(template: &str) -> Option<String> {
    let mut path = String::new();
    let mut rest = template;
    while let Some((before, tail)) = rest.split_once("{{") {
        let (action, after) = tail.split_once("}}")?;
        path.push_str(&literal(before));
        let action = action.trim_matches(['-', ' ']);
        match action.split_once(' ') {
            Some(("range", list)) if is_field(list) => {
                path.push_str("{range ");
                path.push_str(list);
                path.push_str("[*]}");
            }
            None if action == "end" => path.push_str("{end}"),
            None if is_field(action) => {
                path.push('{');
                path.push_str(action);
                path.push('}');
            }
            None if action.starts_with('"') => {
                path.push('{');
                path.push_str(action);
                path.push('}');
            }
            _ => return None,
        }
        rest = after;
    }
    path.push_str(&literal(rest));
    Template::parse(&path).is_ok().then_some(path)
}

/// Text outside of actions; JSON paths have escapes only inside of theirs.
fn literal(text: &str) -> String {
    text.replace("\\n", "{\"\\n\"}").replace('\n', "{\"\\n\"}")
}

/// `.metadata.name`
fn is_field(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    text.len() > 1 && text.starts_with('.') && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::translate;

    #[track_caller]
    fn check(template: &str, path: Option<&str>) {
        assert_eq!(translate(template).as_deref(), path);
    }

    #[test]
    fn fields_and_ranges_have_a_json_path() {
        check("{{.metadata.name}}", Some("{.metadata.name}"));
        check(
            r#"{{range .items}}{{.metadata.name}}{{"\n"}}{{end}}"#,
            Some(r#"{range .items[*]}{.metadata.name}{"\n"}{end}"#),
        );
        check("{{ .spec.cidr }}\n", Some("{.spec.cidr}{\"\\n\"}"));
    }

    #[test]
    fn what_has_conditions_or_functions_has_none() {
        check("{{if .spec.disabled}}off{{end}}", None);
        check("{{join .spec.nets \",\"}}", None);
        check("{{.metadata.name", None);
    }
}
