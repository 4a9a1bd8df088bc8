//! Compression of large responses, at the fastest level as in kube-apiserver.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::body::{ListBody, PIECE};

/// Responses up to this size are not compressed.
pub(crate) const THRESHOLD: usize = 128 * 1024;

/// A body that is compressed while it is written.
pub(crate) struct Gzip {
    source: Source,
    /// `None` when everything is written.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

enum Source {
    Whole(Bytes),
    List(ListBody),
}

impl Gzip {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self::new(Source::Whole(bytes))
    }

    pub(crate) fn list(list: ListBody) -> Self {
        Self::new(Source::List(list))
    }

    fn new(source: Source) -> Self {
        Self { source, encoder: Some(GzEncoder::new(Vec::new(), Compression::fast())) }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.encoder.is_none()
    }

    pub(crate) fn next_piece(&mut self) -> Option<Bytes> {
        loop {
            let encoder = self.encoder.as_mut()?;
            let piece = match &mut self.source {
                Source::Whole(bytes) if bytes.is_empty() => None,
                Source::Whole(bytes) => Some(bytes.split_to(bytes.len().min(PIECE))),
                Source::List(list) => list.next_piece(),
            };
            let Some(piece) = piece else {
                let rest = self.encoder.take()?.finish().expect("writing into memory");
                return Some(rest.into());
            };
            encoder.write_all(&piece).expect("writing into memory");
            let out = std::mem::take(encoder.get_mut());
            if !out.is_empty() {
                return Some(out.into());
            }
        }
    }
}

/// Whether the client takes gzip.
pub(crate) fn accepts_gzip(accept_encoding: Option<&str>) -> bool {
    let clauses = accept_encoding.unwrap_or_default().split(',');
    clauses.map(|c| c.split(';').map(str::trim)).any(|mut parts| {
        let name = parts.next().unwrap_or_default();
        let refused = parts.any(|p| p.replace(' ', "") == "q=0" || p.replace(' ', "") == "q=0.0");
        name.eq_ignore_ascii_case("gzip") && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn compressed_bodies_decompress_to_the_same() {
        let text = Bytes::from("kubernetes ".repeat(50_000));
        let mut gzip = Gzip::whole(text.clone());
        let mut packed = Vec::new();
        while let Some(piece) = gzip.next_piece() {
            packed.extend_from_slice(&piece);
        }
        assert!(gzip.is_done() && packed.len() < text.len() / 10);
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut back).unwrap();
        assert_eq!(back, text);
    }

    #[test]
    fn encodings_as_clients_list_them() {
        for (header, yes) in [
            ("gzip", true),
            ("deflate, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(Some(header)), yes, "{header}");
        }
        assert!(!accepts_gzip(None));
    }
}
