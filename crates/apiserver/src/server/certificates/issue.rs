//! An authority, and the certificates that it issues.

use std::net::IpAddr;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::files::Folder;
use super::names::renamed;
use super::{Error, RENEWAL};

/// How long an authority lasts, and what it issues.
const AUTHORITY_YEARS: i64 = 10;
const YEARS: i64 = 1;

/// The authority's name.
const NAME: &str = "tortie";

/// Whose certificate it is, and what for.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) groups: Vec<String>,
    /// Names and addresses of a server.
    pub(super) alternatives: Vec<String>,
    pub(super) is_server: bool,
}

/// An authority that can vouch for others.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    /// What it issues begins now, by this clock.
    now: Timestamp,
    /// Whether it was made just now, so that nothing that is there can be its.
    is_new: bool,
}

/// A certificate of a server with the authority that vouches for it, all in PEM and in memory.
#[derive(Debug, Clone)]
pub struct SelfIssued {
    /// The certificate of the authority.
    pub authority: String,
    /// The certificate of the server.
    pub certificate: String,
    pub key: String,
}

/// Makes a certificate for a server that is known by these names, and an authority for it alone.
pub fn issue_for_service(names: &[String]) -> Result<SelfIssued, Error> {
    let (authority, _) = Authority::create(Timestamp::now())?;
    let server = Subject {
        name: names.first().cloned().unwrap_or_default(),
        groups: Vec::new(),
        alternatives: names.to_vec(),
        is_server: true,
    };
    let (certificate, key) = authority.issue(&server, in_years(authority.now, YEARS))?;
    Ok(SelfIssued {
        authority: authority.pem,
        certificate,
        key,
    })
}

impl Authority {
    /// The authority in a folder; a new one if there is none, or it does not last much longer. One that begins later is
    /// kept: the clock may be wrong, and clients have been told of it.
    pub(super) fn prepare(folder: &Folder, now: Timestamp) -> Result<Self, Error> {
        let (pem, key) = (folder.read("ca.crt")?, folder.read("ca.key")?);
        if let (Some(pem), Some(key)) = (&pem, &key)
            && lasts(pem, now)
            && let Some(authority) = Self::of(pem, key, now)
        {
            if authority.now > now {
                tracing::warn!(
                    %now,
                    begin = %authority.now,
                    "The authority of the certificates (ca.crt) begins in the future, so the clock is probably wrong; it is \
                     kept, and clients are let in from then on. If the clock is right, remove ca.crt and ca.key"
                );
            }
            return Ok(authority);
        }
        for (name, text) in [("ca.crt", &pem), ("ca.key", &key)] {
            if let Some(text) = text {
                let backup = format!("{name}.before-{}", now.strftime("%Y%m%dT%H%M%SZ"));
                tracing::warn!(
                    file = name,
                    backup,
                    "A file of the authority is replaced, because it has ended or cannot be used"
                );
                folder.write_secret(&backup, text)?;
            }
        }
        let (authority, key) = Self::create(now)?;
        folder.write_secret("ca.key", &key)?;
        folder.write("ca.crt", &authority.pem)?;
        Ok(authority)
    }

    /// The authority in a folder, if there is one.
    pub(super) fn find(folder: &Folder, now: Timestamp) -> Result<Option<Self>, Error> {
        let (pem, key) = (folder.read("ca.crt")?, folder.read("ca.key")?);
        let found = pem.zip(key);
        Ok(found.and_then(|(pem, key)| Self::of(&pem, &key, now)))
    }

    /// The authority of a certificate and a key, if they are its.
    fn of(pem: &str, key: &str, now: Timestamp) -> Option<Self> {
        let key = KeyPair::from_pem(key).ok()?;
        if !is_key_of(pem, &key) {
            return None;
        }
        let issuer = Issuer::from_ca_cert_pem(pem, key).ok()?;
        let begin = begin_of(pem).unwrap_or(now);
        Some(Self {
            issuer,
            pem: pem.to_owned(),
            now: now.max(begin),
            is_new: false,
        })
    }

    fn create(now: Timestamp) -> Result<(Self, String), Error> {
        let make = || {
            let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
            let mut params = lasting(now, in_years(now, AUTHORITY_YEARS), Vec::new())?;
            params.distinguished_name.push(DnType::CommonName, NAME);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
            let pem = params.self_signed(&key)?.pem();
            let text = key.serialize_pem();
            let issuer = Issuer::new(params, key);
            let is_new = true;
            let authority = Self {
                issuer,
                pem,
                now,
                is_new,
            };
            Ok((authority, text))
        };
        make().map_err(issuing(NAME))
    }

    /// Its certificate in PEM.
    pub(super) fn certificate(&self) -> &str {
        &self.pem
    }

    /// The certificate and key in two files; new ones if there are none, they do not last much longer, or they do not say
    /// what they should.
    pub(super) fn prepare_pair(
        &self,
        folder: &Folder,
        file: &str,
        subject: &Subject,
    ) -> Result<(String, String), Error> {
        let (crt, key_file) = (format!("{file}.crt"), format!("{file}.key"));
        if !self.is_new
            && let (Some(pem), Some(key)) = (folder.read(&crt)?, folder.read(&key_file)?)
            && lasts(&pem, self.now)
            && self.has_issued(&pem)
            && names(&pem, &subject.alternatives)
            && KeyPair::from_pem(&key).is_ok_and(|key| is_key_of(&pem, &key))
        {
            return Ok((pem, key));
        }
        let (pem, key) = self.issue(subject, in_years(self.now, YEARS))?;
        folder.write_secret(&key_file, &key)?;
        folder.write(&crt, &pem)?;
        Ok((pem, key))
    }

    /// When it ends.
    pub(super) fn end(&self) -> Timestamp {
        end_of(&self.pem).unwrap_or(self.now)
    }

    /// Makes a key and a certificate for it that is good until some time.
    pub(super) fn issue(
        &self,
        subject: &Subject,
        until: Timestamp,
    ) -> Result<(String, String), Error> {
        let make = || {
            let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
            let mut params = lasting(self.now, until, subject.alternatives.clone())?;
            let name = &mut params.distinguished_name;
            name.push(DnType::CommonName, subject.name.as_str());
            if let [group] = subject.groups.as_slice() {
                name.push(DnType::OrganizationName, group.as_str());
            }
            params.is_ca = IsCa::ExplicitNoCa;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![if subject.is_server {
                ExtendedKeyUsagePurpose::ServerAuth
            } else {
                ExtendedKeyUsagePurpose::ClientAuth
            }];
            params.use_authority_key_identifier_extension = true;
            let certificate = params.signed_by(&key, &self.issuer)?;
            let pem = match subject.groups.as_slice() {
                [] | [_] => certificate.pem(),
                groups => renamed(certificate.der(), &subject.name, groups, self.issuer.key())?,
            };
            Ok((pem, key.serialize_pem()))
        };
        make().map_err(issuing(&subject.name))
    }

    fn has_issued(&self, pem: &str) -> bool {
        let is_ours = with_certificate(&self.pem, |authority| {
            with_certificate(pem, |certificate| {
                certificate
                    .verify_signature(Some(authority.public_key()))
                    .is_ok()
            })
        });
        is_ours.flatten().unwrap_or_default()
    }
}

fn issuing(subject: &str) -> impl FnOnce(rcgen::Error) -> Error {
    let subject = subject.to_owned();
    move |source| Error::Issue { subject, source }
}

/// What all certificates have in common. They begin a day early, for clocks that are behind.
fn lasting(
    now: Timestamp,
    until: Timestamp,
    alternatives: Vec<String>,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(alternatives)?;
    let date = |date: jiff::civil::Date| {
        let number = |number: i8| number.unsigned_abs();
        rcgen::date_time_ymd(date.year().into(), number(date.month()), number(date.day()))
    };
    let today = now.to_zoned(TimeZone::UTC).date();
    params.not_before = date(today.saturating_sub(1.day()));
    let end = until.to_zoned(TimeZone::UTC);
    let midnight = end.date().to_zoned(TimeZone::UTC);
    let of_day = midnight.map(|midnight| end.duration_since(&midnight).unsigned_abs());
    params.not_after = date(end.date()) + of_day.unwrap_or_default();
    Ok(params)
}

/// The beginning of the day that is so many years away.
fn in_years(now: Timestamp, years: i64) -> Timestamp {
    let date = now.to_zoned(TimeZone::UTC).date();
    let date = date.saturating_add(years.years()).to_zoned(TimeZone::UTC);
    date.map_or(Timestamp::MAX, |date| date.timestamp())
}

fn with_certificate<T>(pem: &str, look: impl FnOnce(&X509Certificate<'_>) -> T) -> Option<T> {
    let (_, pem) = parse_x509_pem(pem.as_bytes()).ok()?;
    let (_, certificate) = X509Certificate::from_der(&pem.contents).ok()?;
    Some(look(&certificate))
}

/// Whether a certificate need not be renewed yet. It may begin later, when the clock is right again.
fn lasts(pem: &str, now: Timestamp) -> bool {
    let renewal = SignedDuration::try_from(RENEWAL).unwrap_or_default();
    let until = now.saturating_add(renewal).unwrap_or(Timestamp::MAX);
    end_of(pem).is_some_and(|end| end > until)
}

/// When a certificate ceases to be good.
fn end_of(pem: &str) -> Option<Timestamp> {
    let end = |certificate: &X509Certificate<'_>| certificate.validity().not_after.timestamp();
    Timestamp::from_second(with_certificate(pem, end)?).ok()
}

/// When a certificate begins to be good.
fn begin_of(pem: &str) -> Option<Timestamp> {
    let begin = |certificate: &X509Certificate<'_>| certificate.validity().not_before.timestamp();
    Timestamp::from_second(with_certificate(pem, begin)?).ok()
}

fn is_key_of(pem: &str, key: &KeyPair) -> bool {
    let point = |certificate: &X509Certificate<'_>| {
        certificate.public_key().subject_public_key.data == key.public_key_raw()
    };
    with_certificate(pem, point).unwrap_or_default()
}

/// Whether a certificate names all of these hosts and addresses.
fn names(pem: &str, wanted: &[String]) -> bool {
    let named = with_certificate(pem, |certificate| {
        let extension = certificate.subject_alternative_name().ok().flatten();
        let names = extension
            .iter()
            .flat_map(|names| &names.value.general_names);
        names.filter_map(text_of).collect::<Vec<String>>()
    });
    let named = named.unwrap_or_default();
    wanted.iter().all(|name| named.contains(name))
}

fn text_of(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}
