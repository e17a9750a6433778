//! Why an exchange failed, from its error.

use rental_core::webhooks::attempt::Failure;
use rustix::io::Errno;
use std::{error::Error as StdError, fmt, io};

/// Why a name has no address that may be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal(pub(super) Failure);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl StdError for Refusal {}

/// Why an exchange failed: while `connecting`, or once connected.
pub(crate) fn failure(error: &(dyn StdError + 'static), connecting: bool) -> Failure {
    let mut source = Some(error);
    while let Some(inner) = source {
        if let Some(Refusal(failure)) = inner.downcast_ref() {
            return *failure;
        }
        if let Some(cause) = inner.downcast_ref::<io::Error>() {
            // Once connected, an error no longer says that the request was not received.
            if let Some(failure) = of_system(cause).or_else(|| of_certificate(cause)).filter(|_| connecting) {
                return failure;
            }
            if cause.kind() == io::ErrorKind::TimedOut {
                return Failure::TimedOut;
            }
        }
        source = inner.source();
    }
    if connecting { Failure::CannotConnect } else { Failure::BadAnswer }
}

/// The failure of an attempt that reached no address, if an error of the system tells of one.
pub(super) fn of_system(error: &io::Error) -> Option<Failure> {
    Some(match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => Failure::NoFileDescriptors,
        Errno::NOMEM | Errno::NOBUFS => Failure::NoMemory,
        Errno::ADDRNOTAVAIL => Failure::NoLocalPort,
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::ACCESS | Errno::PERM => Failure::NoRoute,
        _ => return None,
    })
}

/// What is wrong with the receiver's certificate, if that is the cause. The connector wraps errors of TLS in others.
fn of_certificate(cause: &io::Error) -> Option<Failure> {
    use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    let cause = cause.get_ref()?;
    if let Some(cause) = cause.downcast_ref::<io::Error>() {
        return of_certificate(cause);
    }
    match cause.downcast_ref()? {
        // By the clock of this server, which cannot tell that its own clock is wrong.
        rustls::Error::InvalidCertificate(
            Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. },
        ) => Some(Failure::CertificateNotValidNow),
        rustls::Error::InvalidCertificate(_) => Some(Failure::CertificateNotTrusted),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_attempts_that_reach_no_address_are_told_from_those_of_a_receiver() {
        for (error, expected) in [
            (Errno::MFILE, Failure::NoFileDescriptors),
            (Errno::NFILE, Failure::NoFileDescriptors),
            (Errno::NOMEM, Failure::NoMemory),
            (Errno::NOBUFS, Failure::NoMemory),
            (Errno::ADDRNOTAVAIL, Failure::NoLocalPort),
            (Errno::NETUNREACH, Failure::NoRoute),
            (Errno::HOSTUNREACH, Failure::NoRoute),
            (Errno::NETDOWN, Failure::NoRoute),
            (Errno::ACCESS, Failure::NoRoute),
            (Errno::PERM, Failure::NoRoute),
        ] {
            assert_eq!(failure(&io::Error::from(error), true), expected, "{error}");
            assert!(Failure::UNREACHED.contains(&expected));
            assert_eq!(failure(&io::Error::from(error), false), Failure::BadAnswer, "{error} once connected");
        }
        for error in [Errno::CONNREFUSED, Errno::CONNRESET, Errno::PIPE] {
            assert_eq!(failure(&io::Error::from(error), true), Failure::CannotConnect, "{error}");
        }
        assert_eq!(failure(&io::Error::from(Errno::TIMEDOUT), true), Failure::TimedOut);
    }
}
