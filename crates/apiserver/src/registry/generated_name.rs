//! `generateName`: a prefix and five random letters.

/// Without vowels and look-alikes, so that no word appears by chance.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The longest prefix: 63 bytes without the five letters.
const MAX_PREFIX: usize = 58;

/// A name with this prefix, which may be taken.
pub(crate) fn generate_name(prefix: &str, rng: &mut fastrand::Rng) -> String {
    let mut end = prefix.len().min(MAX_PREFIX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let suffix = (0..5).map(|_| char::from(ALPHABET[rng.usize(..ALPHABET.len())]));
    prefix[..end].chars().chain(suffix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_letters_and_never_above_63_bytes() {
        let mut rng = fastrand::Rng::with_seed(1);
        let name = generate_name("gen-", &mut rng);
        assert_eq!(name.len(), 9);
        assert!(name[4..].bytes().all(|b| ALPHABET.contains(&b)));
        assert_ne!(name, generate_name("gen-", &mut rng));
        assert_eq!(generate_name(&"é".repeat(60), &mut rng).len(), 63);
    }
}
