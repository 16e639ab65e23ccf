//! A certificate authority for one server, and the certificates it signs, all made by the `openssl`
//! command.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    command::{command, run},
    error::{Result, cannot},
};

/// Extensions by the purpose of a certificate. A server's may also be a client's: etcd dials itself
/// with it.
const OPENSSL_CONFIG: &str = "\
[req]
distinguished_name = dn
prompt = no
[dn]
[ca]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = IP:127.0.0.1, DNS:localhost
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[client]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
";

/// Long enough for any test, even one with its clock set forward.
const DAYS: &str = "3650";

/// A certificate authority whose files are in one folder.
#[derive(Debug)]
pub(crate) struct Authority {
    folder: PathBuf,
    pair: KeyPair,
}

/// The files of a certificate and its key, both PEM; the key is PKCS #8 and only its owner may read
/// it.
#[derive(Debug, Clone)]
pub(crate) struct KeyPair {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    /// Makes a new authority in a folder that exists.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        let config = folder.join("openssl.cnf");
        fs::write(&config, OPENSSL_CONFIG)
            .map_err(cannot(format!("write {}", config.display())))?;
        let pair = issue(folder, "ca", "ca", "/CN=tortie-testkit-ca", None)?;
        Ok(Self {
            folder: folder.to_owned(),
            pair,
        })
    }

    /// The authority that was made in a folder.
    pub(crate) fn open(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            pair: KeyPair {
                cert: folder.join("ca.crt"),
                key: folder.join("ca.key"),
            },
        }
    }

    /// The authority's own certificate.
    pub(crate) fn cert(&self) -> &Path {
        &self.pair.cert
    }

    /// A certificate for a server on 127.0.0.1 alias localhost.
    pub(crate) fn server(&self) -> Result<KeyPair> {
        let ca = Some(&self.pair);
        issue(&self.folder, "server", "server", "/CN=localhost", ca)
    }

    /// A certificate for a client. Its name is of no etcd user, so it gives no rights where
    /// passwords are asked for.
    pub(crate) fn client(&self) -> Result<KeyPair> {
        self.client_named("client", "/CN=tortie-testkit-client")
    }

    /// A certificate for a client with this subject, such as `/CN=ann/O=developers`, in the files `FILE.crt` and
    /// `FILE.key`.
    pub(crate) fn client_named(&self, file: &str, subject: &str) -> Result<KeyPair> {
        issue(&self.folder, file, "client", subject, Some(&self.pair))
    }
}

/// An RSA key to sign service account tokens with, which kube-apiserver wants.
pub(crate) fn rsa_key(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    let mut openssl = command("openssl", folder)?;
    openssl.args([
        "genpkey",
        "-quiet",
        "-algorithm",
        "RSA",
        "-pkeyopt",
        "rsa_keygen_bits:2048",
        "-out",
    ]);
    openssl.arg(&path);
    run(openssl, b"")?.into_stdout()?;
    Ok(path)
}

/// Makes `FILE.crt` and `FILE.key`, signed by the authority or else by itself.
fn issue(
    folder: &Path,
    file: &str,
    purpose: &str,
    subject: &str,
    ca: Option<&KeyPair>,
) -> Result<KeyPair> {
    let pair = KeyPair {
        cert: folder.join(format!("{file}.crt")),
        key: folder.join(format!("{file}.key")),
    };
    let mut openssl = command("openssl", folder)?;
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
    ]);
    openssl.args([
        "-noenc",
        "-sha256",
        "-days",
        DAYS,
        "-subj",
        subject,
        "-extensions",
        purpose,
    ]);
    openssl.arg("-config").arg(folder.join("openssl.cnf"));
    openssl
        .arg("-keyout")
        .arg(&pair.key)
        .arg("-out")
        .arg(&pair.cert);
    if let Some(ca) = ca {
        openssl.arg("-CA").arg(&ca.cert).arg("-CAkey").arg(&ca.key);
    }
    run(openssl, b"")?.into_stdout()?;
    Ok(pair)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn verify(folder: &Path, ca: &Path, purpose: &str, cert: &Path) -> bool {
        let mut openssl = command("openssl", folder).unwrap();
        openssl.args([
            "verify",
            "-x509_strict",
            "-verify_ip",
            "127.0.0.1",
            "-purpose",
            purpose,
        ]);
        openssl.arg("-CAfile").arg(ca).arg(cert);
        run(openssl, b"").unwrap().success()
    }

    #[test]
    fn certificates_are_for_their_purpose_and_keys_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let ca = Authority::create(folder).unwrap();
        let (server, client) = (ca.server().unwrap(), ca.client().unwrap());
        assert!(verify(folder, ca.cert(), "sslserver", &server.cert));
        assert!(!verify(folder, ca.cert(), "sslserver", &client.cert));
        for key in [&server.key, &client.key, &ca.pair.key] {
            assert_eq!(
                fs::metadata(key).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
    }
}
