//! Certificates: from the user, or self-signed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::KeyUsagePurpose;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{NoClientAuth, WebPkiClientVerifier};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// The certificate of a server.
#[derive(Clone)]
pub struct Tls {
    source: Source,
    /// The certificates that clients are configured to trust, as PEM; by default those of the source.
    authority: Option<String>,
    /// The issuers of client certificates, as PEM.
    client_authority: Option<String>,
}

#[derive(Clone)]
enum Source {
    SelfSigned,
    Given { certificates: String, key: String },
}

/// A certificate in use.
#[derive(Clone)]
pub(crate) struct Secured {
    pub(crate) acceptor: TlsAcceptor,
    /// The certificates that clients must trust, as PEM; `None` is the system's.
    pub(crate) authority: Option<String>,
}

/// The error of loading a certificate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The certificate file contains no certificate.
    #[error(
        "there is no certificate: give a PEM file with the server's certificate first and its issuers after it"
    )]
    NoCertificate,
    /// The key file contains no key.
    #[error("there is no private key: give a PEM file with the key that belongs to the certificate")]
    NoKey,
    /// The issuers of client certificates contain no certificate, or an invalid one.
    #[error("there is no valid certificate authority of clients: give a PEM file with its certificates")]
    NoClientAuthority,
    /// Certificate and key do not match, or use an unsupported algorithm.
    #[error("the certificate cannot be used: {0}; check that the key belongs to it")]
    Unusable(#[from] tokio_rustls::rustls::Error),
    /// The self-signed certificate could not be generated.
    #[error("cannot make a certificate: {0}; check that the host name is a valid one")]
    Generate(#[from] rcgen::Error),
}

impl Tls {
    /// A self-signed certificate that is generated at the start. The kubeconfig contains it.
    pub fn self_signed() -> Self {
        Self { source: Source::SelfSigned, authority: None, client_authority: None }
    }

    /// A certificate with its issuers, and its key, as PEM.
    pub fn from_pem(certificates: impl Into<String>, key: impl Into<String>) -> Self {
        let source = Source::Given { certificates: certificates.into(), key: key.into() };
        Self { source, authority: None, client_authority: None }
    }

    /// The same from files.
    pub fn from_files(certificates: impl AsRef<Path>, key: impl AsRef<Path>) -> Result<Self, TlsError> {
        Ok(Self::from_pem(read(certificates.as_ref())?, read(key.as_ref())?))
    }

    /// The CA certificates in kubeconfigs, as PEM. By default the issuers of the given certificate, or itself if it has none.
    pub fn authority(mut self, pem: impl Into<String>) -> Self {
        self.authority = Some(pem.into());
        self
    }

    /// Accepts client certificates that these CAs issued, as PEM. The common name of the subject is the user, and each organization is a
    /// group. A certificate is as good as a token, and may be used in place of one; no client needs one. The handshake with a certificate
    /// of another CA fails.
    pub fn client_authority(mut self, pem: impl Into<String>) -> Self {
        self.client_authority = Some(pem.into());
        self
    }

    /// Generates or loads the certificate. `names` are host names and addresses for a self-signed one.
    pub(crate) fn secure(&self, names: Vec<String>) -> Result<Secured, TlsError> {
        let (chain, key, trusted) = match &self.source {
            Source::SelfSigned => generate(names)?,
            Source::Given { certificates, key } => given(certificates, key)?,
        };
        let provider = Arc::new(ring::default_provider());
        let verifier = self.client_verifier(&provider)?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let authority = self.authority.clone().or(Some(trusted));
        Ok(Secured { acceptor: TlsAcceptor::from(Arc::new(config)), authority })
    }

    fn client_verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let Some(pem) = &self.client_authority else { return Ok(Arc::new(NoClientAuth)) };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate.map_err(|_| TlsError::NoClientAuthority)?)?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        verifier.allow_unauthenticated().build().map_err(|_| TlsError::NoClientAuthority)
    }
}

impl std::fmt::Debug for Tls {
    /// Does not print the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self.source, Source::SelfSigned) { "Tls(self-signed)" } else { "Tls(given)" })
    }
}

impl std::fmt::Debug for Secured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secured")
    }
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>, String);

fn read(path: &Path) -> Result<String, TlsError> {
    std::fs::read_to_string(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

fn given(certificates: &str, key: &str) -> Result<Identity, TlsError> {
    let chain = CertificateDer::pem_slice_iter(certificates.as_bytes()).collect::<Result<Vec<_>, _>>();
    let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or(TlsError::NoCertificate)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| TlsError::NoKey)?;
    Ok((chain, key, issuers(certificates)))
}

/// The certificates after the first, or the first if it is alone.
fn issuers(certificates: &str) -> String {
    const END: &str = "-----END CERTIFICATE-----";
    let rest = certificates.split_once(END).map_or("", |(_, rest)| rest);
    let whole = if rest.contains(END) { rest } else { certificates };
    format!("{}\n", whole.trim())
}

/// Generates a CA and a certificate signed by it: some clients reject a server certificate that is its own CA.
fn generate(names: Vec<String>) -> Result<Identity, TlsError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "kube-informer embedded authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "kube-informer embedded API server");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &authority)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|_| TlsError::NoKey)?;
    Ok((vec![certificate.der().clone()], key, authority.pem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_certificates_work_and_name_their_authority() {
        let secured =
            Tls::self_signed().secure(vec!["localhost".into(), "127.0.0.1".into(), "::1".into()]).unwrap();
        assert!(secured.authority.unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    }

    #[test]
    fn given_certificates_must_be_there_and_fit() {
        let made = || rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
        let (one, other) = (made(), made());
        let (pem, key) = (one.cert.pem(), one.signing_key.serialize_pem());
        let secured = Tls::from_pem(&pem, &key).secure(Vec::new()).unwrap();
        assert_eq!(secured.authority.unwrap().trim(), pem.trim());
        let wrong = Tls::from_pem(&pem, other.signing_key.serialize_pem()).secure(Vec::new());
        assert!(matches!(wrong, Err(TlsError::Unusable(_))), "{wrong:?}");
        assert!(matches!(Tls::from_pem("", &key).secure(Vec::new()), Err(TlsError::NoCertificate)));
        assert!(matches!(Tls::from_pem(&pem, "x").secure(Vec::new()), Err(TlsError::NoKey)));
        assert!(matches!(Tls::from_files("/nonexistent", "/nonexistent"), Err(TlsError::Read { .. })));
        let no_authority = Tls::from_pem(&pem, &key).client_authority("x").secure(Vec::new());
        assert!(matches!(no_authority, Err(TlsError::NoClientAuthority)), "{no_authority:?}");
        let chain = format!("{pem}{}", other.cert.pem());
        assert_eq!(issuers(&chain).trim(), other.cert.pem().trim());
    }
}
