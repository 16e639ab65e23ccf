//! Who a certificate names.

use x509_parser::prelude::{FromDer as _, X509Certificate, X509Name};

use super::User;

/// The user that a certificate names: its common name, in the groups that its organizations name. Whether anybody vouches
/// for that is another question.
pub fn user_of_certificate(der: &[u8]) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    user_of_subject(certificate.subject())
}

fn user_of_subject(subject: &X509Name<'_>) -> Option<User> {
    let name = subject.iter_common_name().next()?.as_str().ok()?;
    let organizations = subject.iter_organization();
    let groups = organizations.filter_map(|organization| organization.as_str().ok());
    if name.is_empty() {
        return None;
    }
    Some(User {
        name: name.to_owned(),
        groups: groups.map(ToOwned::to_owned).collect(),
        ..User::default()
    })
}
