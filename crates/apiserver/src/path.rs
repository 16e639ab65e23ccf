//! What a request's path names: an object, a collection, or something about the API itself.

/// Where a request goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `/`: the list of paths.
    Root,
    Version,
    /// `/healthz`, `/livez`, `/readyz` and what is below them.
    Health(Health),
    Metrics,
    /// `/api`: versions of the core group.
    CoreVersions,
    /// `/apis`: all other groups.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/VERSION` or `/apis/GROUP/VERSION`: the resources of a group.
    GroupVersion {
        /// The group; empty for the core group.
        group: String,
        version: String,
    },
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`: where the documents of groups are.
    OpenApiV3,
    /// `/openapi/v3/…`: the document of a group.
    OpenApiV3Group {
        /// The group; empty for the core group.
        group: String,
        version: String,
    },
    Objects(Objects),
}

/// Which of the checks of health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Whether it works at all.
    Alive,
    /// Whether requests should be sent to it.
    Ready,
}

/// An object or a collection of objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Objects {
    /// The group; empty for the core group.
    pub group: String,
    pub version: String,
    /// The namespace, if the path names one.
    pub namespace: Option<String>,
    /// The plural of the resource.
    pub resource: String,
    /// The object, unless the collection is meant.
    pub name: Option<String>,
    /// A part of the object, such as `status`.
    pub subresource: Option<String>,
}

impl Target {
    /// Reads a path, or gives nothing if it names nothing that could be served.
    ///
    /// Segments are decoded once. One that is empty, or that holds a slash, a control character or only dots after that,
    /// names nothing: no tricks with paths reach the datastore.
    pub fn parse(path: &str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return Some(Self::Root);
        }
        let segments: Option<Vec<String>> = path.split('/').map(decode).collect();
        let segments = segments?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["version"] => Some(Self::Version),
            ["metrics"] => Some(Self::Metrics),
            ["healthz" | "livez", ..] => Some(Self::Health(Health::Alive)),
            ["readyz", ..] => Some(Self::Health(Health::Ready)),
            ["openapi", "v2"] => Some(Self::OpenApiV2),
            ["openapi", "v3"] => Some(Self::OpenApiV3),
            ["openapi", "v3", "api", version] => Some(Self::OpenApiV3Group {
                group: String::new(),
                version: (*version).to_owned(),
            }),
            ["openapi", "v3", "apis", group, version] => Some(Self::OpenApiV3Group {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
            }),
            ["api"] => Some(Self::CoreVersions),
            ["apis"] => Some(Self::Groups),
            ["apis", group] => Some(Self::Group((*group).to_owned())),
            ["api", version, rest @ ..] => Self::below("", version, rest),
            ["apis", group, version, rest @ ..] => Self::below(group, version, rest),
            _ => None,
        }
    }

    fn below(group: &str, version: &str, rest: &[&str]) -> Option<Self> {
        let (group, version) = (group.to_owned(), version.to_owned());
        if rest.is_empty() {
            return Some(Self::GroupVersion { group, version });
        }
        // Namespaces are objects as well: `namespaces/NAME` is one, `namespaces/NAME/pods` are pods in it.
        let (namespace, rest) = match rest {
            ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            _ => (None, rest),
        };
        let (resource, name, subresource) = match rest {
            [resource] => (resource, None, None),
            [resource, name] => (resource, Some(*name), None),
            [resource, name, subresource] => (resource, Some(*name), Some(*subresource)),
            _ => return None,
        };
        Some(Self::Objects(Objects {
            group,
            version,
            namespace: namespace.map(ToOwned::to_owned),
            resource: (*resource).to_owned(),
            name: name.map(ToOwned::to_owned),
            subresource: subresource.map(ToOwned::to_owned),
        }))
    }
}

/// Decodes the percent signs of a segment.
fn decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, others) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        // `from_str_radix` would take a sign.
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = others;
    }
    let segment = String::from_utf8(bytes).ok()?;
    let is_dots = segment.bytes().all(|byte| byte == b'.');
    let is_strange = segment.contains(|c: char| c == '/' || c == '\\' || c.is_control());
    (!is_dots && !is_strange).then_some(segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(path: &str) -> Objects {
        match Target::parse(path) {
            Some(Target::Objects(objects)) => objects,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn objects_are_found_by_their_paths() {
        let policy = objects(
            "/apis/projectcalico.org/v3/namespaces/shop/networkpolicies/default.web/status",
        );
        let expected = Objects {
            group: "projectcalico.org".into(),
            version: "v3".into(),
            namespace: Some("shop".into()),
            resource: "networkpolicies".into(),
            name: Some("default.web".into()),
            subresource: Some("status".into()),
        };
        assert_eq!(policy, expected);
        let pods = objects("/api/v1/pods");
        assert_eq!((pods.namespace, pods.name), (None, None));
        assert_eq!(pods.group, "");
    }

    #[test]
    fn namespaces_are_objects_too() {
        assert_eq!(objects("/api/v1/namespaces").name, None);
        let shop = objects("/api/v1/namespaces/shop");
        assert_eq!(
            (shop.resource.as_str(), shop.name.as_deref()),
            ("namespaces", Some("shop"))
        );
        let status = objects("/api/v1/namespaces/shop/status");
        assert_eq!(status.resource, "namespaces");
        assert_eq!(status.subresource.as_deref(), Some("status"));
        let pods = objects("/api/v1/namespaces/shop/pods");
        assert_eq!(
            (pods.resource.as_str(), pods.namespace.as_deref()),
            ("pods", Some("shop"))
        );
    }

    #[test]
    fn groups_and_documents() {
        let parse = |path| Target::parse(path).unwrap();
        assert_eq!(parse("/"), Target::Root);
        assert_eq!(parse("/api/"), Target::CoreVersions);
        assert_eq!(parse("/apis/apps"), Target::Group("apps".into()));
        let v3 = parse("/openapi/v3/apis/projectcalico.org/v3");
        let expected = Target::OpenApiV3Group {
            group: "projectcalico.org".into(),
            version: "v3".into(),
        };
        assert_eq!(v3, expected);
        assert_eq!(parse("/readyz/ping"), Target::Health(Health::Ready));
    }

    #[test]
    fn tricks_name_nothing() {
        for path in [
            "",
            "api/v1/pods",
            "/api/v1/../v1/pods",
            "/api/v1/namespaces/%2e%2e/pods",
            "/api/v1/namespaces/a%2fb/pods",
            "/api/v1//pods",
            "/api/v1/pods/%00",
            "/api/v1/pods/%zz",
            "/api/v1/pods/%+1",
            "/api/v1/pods/%4",
            "/api/v1/pods/%ff",
            "/api/v1/pods/a/b/c",
            "/unknown",
        ] {
            assert_eq!(Target::parse(path), None, "{path}");
        }
        assert_eq!(objects("/api/v1/nodes/a%2Eb").name.as_deref(), Some("a.b"));
    }
}
