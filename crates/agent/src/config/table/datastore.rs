//! Who this node is and how it reaches the datastore.

use crate::config::parameter::{Kind, Parameter};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "DatastoreType",
        Kind::OneOf(&["kubernetes", "etcdv3"]),
        "etcdv3",
        "which kind of datastore to read from",
    )
    .local_only()
    .required()
    .fatal(),
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
    .local_only(),
    Parameter::new(
        "EtcdScheme",
        Kind::OneOf(&["http", "https"]),
        "http",
        "protocol to reach `EtcdAddr` with",
    )
    .local_only(),
    Parameter::new(
        "EtcdKeyFile",
        Kind::ExistingPath,
        "",
        "file with the private key for etcd",
    )
    .local_only(),
    Parameter::new(
        "EtcdCertFile",
        Kind::ExistingPath,
        "",
        "file with the certificate that is shown to etcd",
    )
    .local_only(),
    Parameter::new(
        "EtcdCaFile",
        Kind::ExistingPath,
        "",
        "file with the authorities that etcd's certificate must come from",
    )
    .local_only(),
    Parameter::new(
        "EtcdEndpoints",
        Kind::Endpoints,
        "",
        "addresses of all etcd servers; wins over `EtcdAddr` and `EtcdScheme`",
    )
    .local_only(),
    Parameter::new(
        "TyphaAddr",
        Kind::Authority,
        "",
        "host and port of the fan-out server; wins over `TyphaK8sServiceName`",
    )
    .local_only(),
    Parameter::new(
        "TyphaK8sServiceName",
        Kind::Text,
        "",
        "Kubernetes service whose endpoints are the fan-out servers",
    )
    .local_only(),
    Parameter::new(
        "TyphaK8sNamespace",
        Kind::Text,
        "kube-system",
        "namespace of `TyphaK8sServiceName`",
    )
    .local_only()
    .required(),
    Parameter::new(
        "TyphaReadTimeout",
        Kind::Seconds,
        "30",
        "silence of the fan-out server after which the connection counts as lost",
    )
    .local_only(),
    Parameter::new(
        "TyphaWriteTimeout",
        Kind::Seconds,
        "10",
        "time that sending to the fan-out server may take",
    )
    .local_only(),
    Parameter::new(
        "TyphaKeyFile",
        Kind::ExistingPath,
        "",
        "file with the private key for the fan-out server",
    )
    .local_only(),
    Parameter::new(
        "TyphaCertFile",
        Kind::ExistingPath,
        "",
        "file with the certificate that is shown to the fan-out server",
    )
    .local_only(),
    Parameter::new(
        "TyphaCAFile",
        Kind::ExistingPath,
        "",
        "file with the authorities that the fan-out server's certificate must come from",
    )
    .local_only(),
    Parameter::new(
        "TyphaCN",
        Kind::Text,
        "",
        "common name that the fan-out server's certificate must have",
    )
    .local_only(),
    Parameter::new(
        "TyphaURISAN",
        Kind::Text,
        "",
        "URI that the fan-out server's certificate must name",
    )
    .local_only(),
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
    ),
    Parameter::new(
        "CalicoVersion",
        Kind::Text,
        "",
        "version of Calico in usage reports",
    ),
    Parameter::new(
        "Variant",
        Kind::Text,
        "Calico",
        "product that programs this node; any other than `Calico` only watches",
    ),
];
