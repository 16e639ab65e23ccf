//! Who this node is and how it reaches the datastore.

use crate::parameter::{Kind, Parameter};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "DatastoreType",
        Kind::OneOf(&["kubernetes", "etcdv3"]),
        "etcdv3",
        "which kind of datastore to read from",
    )
    .local_only()
    .required()
    .fatal()
    .ignored("only the command line, variables of the environment and calicoctl's configuration file say which datastore is used"),
    Parameter::new(
        "FelixHostname",
        Kind::HostName,
        "",
        "name of this node in the datastore; without it, the name of the machine in lower case",
    )
    .local_only()
    .required()
    .acted_on(),
    Parameter::new(
        "EtcdAddr",
        Kind::Authority,
        "127.0.0.1:2379",
        "host and port of etcd, where no list of endpoints is given",
    )
    .local_only()
    .ignored("etcd is not looked for there: only the command line, variables of the environment and calicoctl's configuration file say which datastore is used"),
    Parameter::new(
        "EtcdScheme",
        Kind::OneOf(&["http", "https"]),
        "http",
        "protocol to reach `EtcdAddr` with",
    )
    .local_only()
    .ignored("etcd is not reached so: only the command line, variables of the environment and calicoctl's configuration file say which datastore is used"),
    Parameter::new(
        "EtcdKeyFile",
        Kind::Path,
        "",
        "file with the private key for etcd",
    )
    .local_only()
    .ignored("this key is not used for etcd: only the command line, variables of the environment and calicoctl's configuration file say which datastore is used"),
    Parameter::new(
        "EtcdCertFile",
        Kind::Path,
        "",
        "file with the certificate that is shown to etcd",
    )
    .local_only()
    .ignored("this certificate is not shown to etcd: only the command line, variables of the environment and calicoctl's configuration file say which datastore is used"),
    Parameter::new(
        "EtcdCaFile",
        Kind::Path,
        "",
        "file with the authorities that etcd's certificate must come from",
    )
    .local_only()
    .ignored("etcd's certificate is not checked against this: only the command line, variables of the environment and calicoctl's configuration file say which datastore is used"),
    Parameter::new(
        "EtcdEndpoints",
        Kind::Endpoints,
        "",
        "addresses of all etcd servers; wins over `EtcdAddr` and `EtcdScheme`",
    )
    .local_only()
    .ignored("these servers are not asked: only the command line, variables of the environment and calicoctl's configuration file say which datastore is used"),
    Parameter::new(
        "TyphaAddr",
        Kind::Authority,
        "",
        "host and port of the fan-out server; wins over `TyphaK8sServiceName`",
    )
    .local_only()
    .ignored("the datastore is read directly: no fan-out server is asked"),
    Parameter::new(
        "TyphaK8sServiceName",
        Kind::Text,
        "",
        "Kubernetes service whose endpoints are the fan-out servers",
    )
    .local_only()
    .ignored("the datastore is read directly: no fan-out server is asked"),
    Parameter::new(
        "TyphaK8sNamespace",
        Kind::Text,
        "kube-system",
        "namespace of `TyphaK8sServiceName`",
    )
    .local_only()
    .required()
    .ignored("the datastore is read directly: no fan-out server is asked"),
    Parameter::new(
        "TyphaReadTimeout",
        Kind::Seconds,
        "30",
        "silence of the fan-out server after which the connection counts as lost",
    )
    .local_only()
    .ignored("the datastore is read directly: no fan-out server is asked, and none times out"),
    Parameter::new(
        "TyphaWriteTimeout",
        Kind::Seconds,
        "10",
        "time that sending to the fan-out server may take",
    )
    .local_only()
    .ignored("the datastore is read directly: no fan-out server is asked, and none times out"),
    Parameter::new(
        "TyphaKeyFile",
        Kind::Path,
        "",
        "file with the private key for the fan-out server",
    )
    .local_only()
    .ignored("the datastore is read directly: no fan-out server is asked, and this key is not used"),
    Parameter::new(
        "TyphaCertFile",
        Kind::Path,
        "",
        "file with the certificate that is shown to the fan-out server",
    )
    .local_only()
    .ignored("the datastore is read directly: no fan-out server is asked, and this certificate is not shown"),
    Parameter::new(
        "TyphaCAFile",
        Kind::Path,
        "",
        "file with the authorities that the fan-out server's certificate must come from",
    )
    .local_only()
    .ignored("the datastore is read directly: no fan-out server is asked, and no certificate is checked"),
    Parameter::new(
        "TyphaCN",
        Kind::Text,
        "",
        "common name that the fan-out server's certificate must have",
    )
    .local_only()
    .ignored("the datastore is read directly: no fan-out server is asked, and no certificate is checked"),
    Parameter::new(
        "TyphaURISAN",
        Kind::Text,
        "",
        "URI that the fan-out server's certificate must name",
    )
    .local_only()
    .ignored("the datastore is read directly: no fan-out server is asked, and no certificate is checked"),
    Parameter::new(
        "ClusterType",
        Kind::Text,
        "",
        "what kinds of cluster this is, separated by commas, such as `k8s,openstack`",
    )
    .acted_on(),
    Parameter::new(
        "ClusterGUID",
        Kind::Text,
        "baddecaf",
        "identity of the cluster in usage reports",
    )
    .ignored("no usage is reported"),
    Parameter::new(
        "CalicoVersion",
        Kind::Text,
        "",
        "version of Calico in usage reports",
    )
    .ignored("no usage is reported"),
    Parameter::new(
        "Variant",
        Kind::Text,
        "Calico",
        "product that programs this node; any other than `Calico` only watches",
    )
    .ignored("this agent programs the node whatever product is named"),
];
