//! The API server of `tortie up` beside a real kube-apiserver: the same commands, the same outcome.

mod custom;
mod kinds;
mod services;
mod status;

use tortie_testkit::{KubeApiServer, Output};

use crate::up::server::Up;

/// One of each.
struct Both {
    up: Up,
    kube: KubeApiServer,
}

impl Both {
    fn new() -> Self {
        Self {
            up: Up::api_server(),
            kube: KubeApiServer::start().unwrap(),
        }
    }

    fn run(&self, arguments: &[&str], input: &str) -> [Output; 2] {
        let expected = self.kube.kubectl_stdin(arguments, input).unwrap();
        [expected, self.up.try_kubectl(arguments, input)]
    }

    /// Both print the same, and succeed.
    #[track_caller]
    fn same(&self, arguments: &[&str], input: &str) -> String {
        let [expected, told] = self.run(arguments, input);
        assert!(expected.success(), "{}", expected.stderr);
        assert!(told.success(), "{}", told.stderr);
        assert_eq!(told.stdout, expected.stdout, "{arguments:?}");
        told.stdout
    }

    /// Both refuse, and both say this of it.
    #[track_caller]
    fn refused(&self, arguments: &[&str], input: &str, why: &str) {
        for output in self.run(arguments, input) {
            assert!(!output.success(), "{arguments:?}: {}", output.stdout);
            assert!(output.stderr.contains(why), "{why} in {}", output.stderr);
        }
    }

    /// Both have the same at these places of an object.
    #[track_caller]
    fn same_fields(&self, kind: &str, name: &str, fields: &[&str]) -> String {
        let fields = fields.iter().map(|field| format!("{{{field}}} "));
        let path = format!("--output=jsonpath={}", fields.collect::<String>());
        self.same(&["get", kind, name, &path], "")
    }
}
