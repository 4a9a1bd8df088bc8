//! The user of a client certificate.

use std::collections::BTreeMap;

use ring::digest::{SHA256, digest};
use tokio_rustls::rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use super::User;

/// `2.5.4.3`, the name of the user.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// `2.5.4.10`, a group of the user.
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
/// `1.3.6.1.4.1.57683.2`, the uid of the user.
const USER_UID: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02];
/// The key of the extra value that names the certificate.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// UTF8String, NumericString, PrintableString and IA5String, all of which are UTF-8.
const STRINGS: [u8; 4] = [0x0c, 0x12, 0x13, 0x16];

/// The user that the subject of a certificate names, as in kube-apiserver: the common name is the user, each organization is a group.
/// `None` without a common name. The chain of the certificate must have been verified.
pub(crate) fn user_of_certificate(certificate: &CertificateDer<'_>) -> Option<User> {
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    let mut user = user_of_subject(parsed.subject())?;
    let hash: String =
        digest(&SHA256, certificate.as_ref()).as_ref().iter().map(|b| format!("{b:02x}")).collect();
    user.extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={hash}")])]);
    Some(user)
}

/// The user of a subject, which is DER without its outer sequence. `None` if it is malformed.
pub(crate) fn user_of_subject(subject: &[u8]) -> Option<User> {
    let (mut name, mut uid, mut groups) = (String::new(), String::new(), Vec::new());
    let mut rest = subject;
    while !rest.is_empty() {
        let mut set = element(&mut rest, SET)?;
        while !set.is_empty() {
            let mut attribute = element(&mut set, SEQUENCE)?;
            let identifier = element(&mut attribute, OBJECT_IDENTIFIER)?;
            let Some(value) = string(attribute) else { continue };
            // The last one counts, as in Go.
            match identifier {
                COMMON_NAME => name = value,
                USER_UID => uid = value,
                ORGANIZATION => groups.push(value),
                _ => {}
            }
        }
    }
    (!name.is_empty()).then(|| User::new(&name, &uid, groups))
}

fn string(mut der: &[u8]) -> Option<String> {
    let tag = *der.first()?;
    let content = element(&mut der, tag)?;
    STRINGS.contains(&tag).then(|| String::from_utf8(content.to_vec()).ok())?
}

/// Removes the first element from `der`, and returns its content. `None` if it has another tag or is truncated.
fn element<'a>(der: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (&first, rest) = der.split_first()?;
    let (&length, mut rest) = rest.split_first()?;
    let length = match length {
        0..=0x7f => usize::from(length),
        // The long form: this many bytes are the length. More than two would be a name of 64 KiB.
        0x81 | 0x82 => {
            let (bytes, after) = rest.split_at_checked(usize::from(length & 0x7f))?;
            rest = after;
            bytes.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte))
        }
        _ => return None,
    };
    let (content, after) = rest.split_at_checked(length)?;
    *der = after;
    (first == tag).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, CustomExtension, DnType, KeyPair};

    fn certificate(attributes: &[(DnType, &str)]) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in attributes {
            params.distinguished_name.push(kind.clone(), *value);
        }
        // Go's certificates always have version 3, which rcgen only writes with an extension.
        params.custom_extensions.push(CustomExtension::from_oid_content(&[1, 2, 3], vec![5, 0]));
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    #[test]
    fn the_subject_names_the_user_its_group_and_its_uid() {
        let uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        let long = "x".repeat(300);
        let attributes = [
            (DnType::CountryName, "DE"),
            (DnType::OrganizationName, "system:masters"),
            (DnType::CommonName, long.as_str()),
            (uid, "u-1"),
        ];
        let certificate = certificate(&attributes);
        let user = user_of_certificate(&certificate).unwrap();
        assert_eq!(user.name, long);
        assert_eq!(user.uid, "u-1");
        assert_eq!(user.groups, ["system:masters", "system:authenticated"]);
        assert!(user.extra[CREDENTIAL_ID][0].starts_with("X509SHA256="), "{:?}", user.extra);
        assert_eq!(user.extra[CREDENTIAL_ID][0].len(), "X509SHA256=".len() + 64);
    }

    #[test]
    fn a_subject_without_a_common_name_is_no_user() {
        assert_eq!(user_of_certificate(&certificate(&[(DnType::OrganizationName, "a")])), None);
        assert_eq!(user_of_certificate(&CertificateDer::from(vec![SEQUENCE, 0])), None);
    }

    #[test]
    fn a_truncated_or_malformed_subject_is_no_user_and_no_panic() {
        let name = [SET, 11, SEQUENCE, 9, 6, 3, 0x55, 4, 3, 0x0c, 2, b'm', b'e'];
        assert_eq!(user_of_subject(&name).unwrap().name, "me");
        for end in 0..name.len() {
            assert_eq!(user_of_subject(&name[..end]), None, "{end}");
        }
        for place in 0..name.len() {
            for value in [0, 0x30, 0x80, 0x82, 0xff] {
                let mut changed = name;
                changed[place] = value;
                let _ = user_of_subject(&changed);
            }
        }
        let group = |letter| [SET, 10, SEQUENCE, 8, 6, 3, 0x55, 4, 10, 0x13, 1, letter];
        let subject = [&name[..], &group(b'a'), &group(b'b')].concat();
        assert_eq!(user_of_subject(&subject).unwrap().groups, ["a", "b", "system:authenticated"]);
    }
}
