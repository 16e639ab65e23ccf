//! The files of a new operator: those of the example.

macro_rules! file {
    ($path:literal) => {
        (
            $path,
            include_str!(concat!("../../../../../examples/operator/", $path)),
        )
    };
}

/// Each with its path in the project.
pub(super) const FILES: &[(&str, &str)] = &[
    file!("Cargo.toml"),
    file!("Dockerfile"),
    file!("README.md"),
    file!("config/crd/definition.json"),
    file!("config/crd/kustomization.yaml"),
    file!("config/default/kustomization.yaml"),
    file!("config/manager/deployment.yaml"),
    file!("config/manager/kustomization.yaml"),
    file!("config/manager/namespace.yaml"),
    file!("config/rbac/kustomization.yaml"),
    file!("config/rbac/roles.yaml"),
    file!("config/samples/sample.yaml"),
    file!("config/webhook/certificate.yaml"),
    file!("config/webhook/kustomization.yaml"),
    file!("config/webhook/service.yaml"),
    file!("config/webhook/webhooks.yaml"),
    file!("src/admission.rs"),
    file!("src/lib.rs"),
    file!("src/main.rs"),
    file!("src/reconcile.rs"),
    file!("src/resource.rs"),
    file!("tests/kube.rs"),
];
