//! Why a server cannot be reached, in plain words.

use std::error::Error as StdError;
use std::io;

use k8s_openapi::jiff::Timestamp;
use rustls::CertificateError;
use rustls::pki_types::UnixTime;

/// The last of an error's causes tells what happened; those before it only where it passed through.
pub(crate) fn plainly(error: &(dyn StdError + 'static)) -> String {
    let mut last = error;
    while let Some(cause) = beneath(last) {
        last = cause;
    }
    if let Some(error) = last.downcast_ref::<io::Error>() {
        let text = error.to_string();
        let number = text.find(" (os error");
        return text[..number.unwrap_or(text.len())].to_lowercase();
    }
    match last.downcast_ref::<rustls::Error>() {
        Some(rustls::Error::InvalidCertificate(error)) => about_certificate(error),
        _ => last.to_string(),
    }
}

fn beneath<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    // What such an error holds is not its source, but what it says.
    let inner = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    match inner {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

fn about_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::ExpiredContext { time, not_after } => format!(
            "its certificate ended on {}, and this machine's clock says {}",
            date(*not_after),
            date(*time)
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "its certificate is good from {} on, and this machine's clock says {}",
            date(*not_before),
            date(*time)
        ),
        CertificateError::UnknownIssuer => {
            "its certificate is of an authority that is not among those to trust".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => format!(
            "its certificate is for {}, not for {}",
            presented.join(", "),
            expected.to_str()
        ),
        other => format!("its certificate is not right: {other}"),
    }
}

fn date(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds)
        .map_or_else(|_| format!("second {seconds}"), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct Outer(#[source] io::Error);

    #[track_caller]
    fn check(error: io::Error, expected: &str) {
        assert_eq!(plainly(&Outer(error)), expected);
    }

    #[test]
    fn the_last_cause_is_what_people_want_to_know() {
        check(io::Error::from_raw_os_error(111), "connection refused");
        check(io::Error::other("it is gone"), "it is gone");
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let of = |error| io::Error::other(rustls::Error::InvalidCertificate(error));
        check(
            of(CertificateError::ExpiredContext {
                time: at(1_794_873_600),
                not_after: at(1_731_904_124),
            }),
            "its certificate ended on 2024-11-18T04:28:44Z, and this machine's clock says 2026-11-17T00:00:00Z",
        );
        check(
            of(CertificateError::UnknownIssuer),
            "its certificate is of an authority that is not among those to trust",
        );
    }
}
