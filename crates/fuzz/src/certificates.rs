//! The subjects of client certificates.

use kube_embedded_apiserver::fuzzing;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
const USER_UID: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02];
const UTF8_STRING: u8 = 0x0c;

/// A subject, and a certificate with it.
///
/// 1. Any bytes are a user with a name, or none. Every text of the user was sent.
/// 2. A subject with the name, the uid and the groups of that user is the same user.
/// 3. The last common name counts, and a cut subject gives no other groups than the whole one.
/// 4. A certificate of any bytes, or with this subject, is no panic.
pub fn certificate_subject(data: &[u8]) {
    let _ = fuzzing::certificate(data);
    let _ = fuzzing::certificate(&around(data));
    let Some((name, uid, groups)) = fuzzing::certificate_subject(data) else { return };
    assert!(!name.is_empty());
    let (added, sent) = groups.split_last().expect("the group of all users");
    let is_added = added == "system:authenticated";
    let sent = if is_added && !contains(data, added) { sent } else { &groups };
    for text in sent.iter().chain([&name, &uid]) {
        assert!(contains(data, text), "{text:?}");
    }
    let mut again = attribute(COMMON_NAME, &name);
    again.extend(attribute(USER_UID, &uid));
    groups.iter().for_each(|group| again.extend(attribute(ORGANIZATION, group)));
    assert_eq!(fuzzing::certificate_subject(&again), Some((name, uid.clone(), groups.clone())));
    let renamed = [data, &attribute(COMMON_NAME, "last")].concat();
    assert_eq!(fuzzing::certificate_subject(&renamed), Some(("last".to_owned(), uid, groups.clone())));
    for end in (0..data.len()).rev().take(64) {
        if let Some((_, _, fewer)) = fuzzing::certificate_subject(&data[..end]) {
            assert!(fewer.iter().all(|group| group == added || groups.contains(group)), "{fewer:?}");
        }
    }
}

fn contains(data: &[u8], text: &str) -> bool {
    text.is_empty() || data.windows(text.len()).any(|part| part == text.as_bytes())
}

/// A set with one attribute.
fn attribute(identifier: &[u8], text: &str) -> Vec<u8> {
    let pair = [element(0x06, identifier), element(UTF8_STRING, text.as_bytes())].concat();
    element(0x31, &element(0x30, &pair))
}

/// An element in the shortest form that DER has for its length. Inputs are smaller than 64 KiB.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes();
    let mut der = match (high, low) {
        (0, 0..=0x7f) => vec![tag, low],
        (0, _) => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    der.extend_from_slice(content);
    der
}

/// A certificate with this subject: a version, a serial number, an algorithm, an issuer, a validity, a subject, a key and extensions.
fn around(subject: &[u8]) -> Vec<u8> {
    let algorithm = element(0x30, &element(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]));
    let time = element(0x17, b"300101000000Z");
    let key = [algorithm.clone(), element(0x03, &[0, 4, 1])].concat();
    let unknown = element(0x30, &[element(0x06, &[0x2a, 3]), element(0x04, &[5, 0])].concat());
    let body = [
        element(0xa0, &element(0x02, &[2])),
        element(0x02, &[1]),
        algorithm.clone(),
        element(0x30, &[]),
        element(0x30, &[time.clone(), time].concat()),
        element(0x30, subject),
        element(0x30, &key),
        element(0xa3, &element(0x30, &unknown)),
    ];
    element(0x30, &[element(0x30, &body.concat()), algorithm, element(0x03, &[0, 1])].concat())
}
