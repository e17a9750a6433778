//! `rental-cli` sends its secrets over TLS to a server whose certificate it can trust, and to no other.

use super::Cli;
use crate::tls::authority::Trusted;

#[test]
fn a_server_with_an_untrusted_certificate_gets_no_request() {
    let Some(cli) = Cli::find() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let trusted = Trusted::start(directory.path());
    let (_, authority) = trusted.trust.split_once('=').expect("a variable");
    let run = |base_url: &str, authority: Option<&str>| {
        let mut command = cli.command(base_url, "organizations list");
        let ran = command.envs(authority.map(|file| ("SSL_CERT_FILE", file))).output().expect("the program runs");
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    assert_eq!(run(&trusted.url, Some(authority)).0, Some(0));
    // Another name, and an authority that this machine does not know.
    let by_address = trusted.url.replace("localhost", "127.0.0.1");
    for (base_url, authority) in [(by_address.as_str(), Some(authority)), (&trusted.url, None)] {
        let (code, stderr) = run(base_url, authority);
        assert!(code == Some(7) && stderr.contains("certificate"), "{base_url}: {code:?} {stderr}");
    }
    assert!(!trusted.server.log().contains("authentication failed"), "{}", trusted.server.log());
}
