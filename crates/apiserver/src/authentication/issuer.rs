//! Tokens of service accounts: signed, so that other programs can verify them with the published key.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde_json::{Value, json};

use super::User;
use super::bound_objects::BoundObjects;
use crate::clock::Clock;

/// The `iss` claim, and the audience of tokens for this server, as in most clusters.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";
/// The longest token that is looked at.
const MAX_TOKEN: usize = 16 * 1024;

/// Issues and verifies the tokens of service accounts.
///
/// The key is made when it is first needed, and lives as long as the server: its tokens do too, at most.
pub(crate) struct Issuer {
    clock: Clock,
    key: OnceLock<Option<EcdsaKeyPair>>,
    /// Where clients reach the server, if it is on a socket.
    url: OnceLock<String>,
    bound_objects: Arc<BoundObjects>,
}

/// The service account of a new token, and the object that the token is bound to.
#[derive(Debug)]
pub(crate) struct TokenSubject {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// Claims such as `pod`, with name and uid.
    pub(crate) bound: Vec<(&'static str, Value)>,
    /// The storage keys of the service account and of the object, with their uids.
    pub(crate) keys: Vec<(String, String)>,
}

impl Issuer {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, key: OnceLock::new(), url: OnceLock::new(), bound_objects: Arc::default() }
    }

    /// Sets the URL of the server. Only the first call has an effect.
    pub(crate) fn set_url(&self, url: &str) {
        let _ = self.url.set(url.to_owned());
    }

    /// The objects that tokens are bound to, which have to follow the store.
    pub(crate) fn bound_objects(&self) -> &Arc<BoundObjects> {
        &self.bound_objects
    }

    /// Invalidates the tokens that are bound to an object, which was deleted before its token was issued.
    pub(crate) fn forget(&self, key: &str) {
        self.bound_objects.remove(key);
    }

    /// A token for these audiences, or for this server. `None` if this machine has no randomness.
    pub(crate) fn issue(
        &self,
        subject: &TokenSubject,
        audiences: &[String],
        seconds: i64,
        id: &str,
    ) -> Option<String> {
        let now = self.clock.seconds();
        let mut kubernetes = json!({
            "namespace": subject.namespace,
            "serviceaccount": {"name": subject.name, "uid": subject.uid},
        });
        for (kind, object) in &subject.bound {
            kubernetes[kind] = object.clone();
        }
        let claims = json!({
            "aud": audiences,
            "exp": now.saturating_add(seconds),
            "iat": now,
            "iss": ISSUER,
            "jti": id,
            "kubernetes.io": kubernetes,
            "nbf": now,
            "sub": format!("system:serviceaccount:{}:{}", subject.namespace, subject.name),
        });
        let header = json!({"alg": "ES256", "kid": self.key_id()?});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = self.key()?.sign(&SystemRandom::new(), signed.as_bytes()).ok()?;
        for (key, uid) in &subject.keys {
            self.bound_objects.add(key, uid);
        }
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The user of a valid token whose objects exist, and those of `audiences` that it is for. Without audiences it must be for this
    /// server.
    pub(crate) fn verify(&self, token: &str, audiences: Option<&[String]>) -> Option<(User, Vec<String>)> {
        let claims = self.claims(token)?;
        let own = [ISSUER.to_owned()];
        let meant = |audience: &&String| {
            claims["aud"].as_array().is_some_and(|all| all.iter().any(|a| a == audience.as_str()))
        };
        let audiences = audiences.filter(|wanted| !wanted.is_empty()).unwrap_or(&own);
        let matching: Vec<String> = audiences.iter().filter(meant).cloned().collect();
        if matching.is_empty() {
            return None;
        }
        let kubernetes = &claims["kubernetes.io"];
        let account = &kubernetes["serviceaccount"];
        let namespace = kubernetes["namespace"].as_str()?;
        let bound = ["serviceaccount", "pod", "node", "secret"].map(|kind| kubernetes[kind]["uid"].as_str());
        if !bound.iter().flatten().all(|uid| self.bound_objects.contains(uid)) {
            return None;
        }
        let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        let mut user = User::new(claims["sub"].as_str()?, account["uid"].as_str()?, groups);
        let mut extra = |name: &str, value: String| {
            user.extra.insert(format!("authentication.kubernetes.io/{name}"), vec![value]);
        };
        extra("credential-id", format!("JTI={}", claims["jti"].as_str()?));
        for kind in ["pod", "node"] {
            for field in ["name", "uid"] {
                if let Some(value) = kubernetes[kind][field].as_str() {
                    extra(&format!("{kind}-{field}"), value.to_owned());
                }
            }
        }
        Some((user, matching))
    }

    /// Whether a token says that this server issued it. It may be expired, or for another audience.
    pub(crate) fn looks_issued(&self, token: &str) -> bool {
        let claims = || {
            let claims = token.split('.').nth(1).filter(|_| token.len() <= MAX_TOKEN)?;
            serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
        };
        claims().is_some_and(|claims| claims["iss"] == ISSUER)
    }

    /// The claims of a token that this server signed and that has not expired.
    fn claims(&self, token: &str) -> Option<Value> {
        let key = self.key.get()?.as_ref()?;
        let (signed, signature) = token.rsplit_once('.').filter(|_| token.len() <= MAX_TOKEN)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key());
        public.verify(signed.as_bytes(), &signature).ok()?;
        let (_, claims) = signed.split_once('.')?;
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        (claims["exp"].as_i64()? > self.clock.seconds()).then_some(claims)
    }

    /// `/.well-known/openid-configuration`
    pub(crate) fn discovery(&self) -> Value {
        let url = self.url.get().map_or(ISSUER, String::as_str);
        json!({
            "issuer": ISSUER,
            "jwks_uri": format!("{url}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }

    /// `/openid/v1/jwks`: the public key.
    pub(crate) fn key_set(&self) -> Option<Value> {
        // The format byte, and two coordinates.
        let point = self.key()?.public_key().as_ref();
        let (x, y) = point.get(1..)?.split_at_checked(32)?;
        let key = json!({
            "alg": "ES256",
            "crv": "P-256",
            "kid": self.key_id()?,
            "kty": "EC",
            "use": "sig",
            "x": URL_SAFE_NO_PAD.encode(x),
            "y": URL_SAFE_NO_PAD.encode(y),
        });
        Some(json!({"keys": [key]}))
    }

    fn key_id(&self) -> Option<String> {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.key()?.public_key().as_ref());
        Some(URL_SAFE_NO_PAD.encode(digest))
    }

    fn key(&self) -> Option<&EcdsaKeyPair> {
        let generate = || {
            let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).ok()?;
            EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).ok()
        };
        self.key.get_or_init(generate).as_ref()
    }
}

impl std::fmt::Debug for Issuer {
    /// Does not show the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Issuer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(issuer: &Issuer, audience: &str, seconds: i64) -> String {
        let subject = TokenSubject {
            namespace: "shop".to_owned(),
            name: "cart".to_owned(),
            uid: "u".to_owned(),
            bound: vec![("pod", json!({"name": "p", "uid": "v"}))],
            keys: [("/serviceaccounts/shop/cart", "u"), ("/pods/shop/p", "v")]
                .map(|(key, uid)| (key.to_owned(), uid.to_owned()))
                .to_vec(),
        };
        issuer.issue(&subject, &[audience.to_owned()], seconds, "id").unwrap()
    }

    #[test]
    fn tokens_are_valid_until_they_expire_and_for_their_audience() {
        let issuer = Issuer::new(Clock::default());
        let (user, _) = issuer.verify(&token(&issuer, ISSUER, 600), None).unwrap();
        assert_eq!((&*user.name, &*user.uid), ("system:serviceaccount:shop:cart", "u"));
        assert_eq!(
            user.groups,
            ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"]
        );
        assert_eq!(user.extra["authentication.kubernetes.io/pod-name"], ["p"]);
        assert!(issuer.verify(&token(&issuer, ISSUER, 0), None).is_none(), "expired");
        let other = token(&issuer, "vault", 600);
        assert!(issuer.verify(&other, None).is_none());
        let (_, audiences) = issuer.verify(&other, Some(&["x".to_owned(), "vault".to_owned()])).unwrap();
        assert_eq!(audiences, ["vault"]);
    }

    #[test]
    fn tokens_of_others_and_changed_ones_are_invalid() {
        let issuer = Issuer::new(Clock::default());
        assert!(issuer.verify("", None).is_none(), "no key yet");
        let good = token(&issuer, ISSUER, 600);
        let (signed, signature) = good.rsplit_once('.').unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let changed =
            String::from_utf8(URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap().replace("cart", "root");
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        for wrong in [
            token(&Issuer::new(Clock::default()), ISSUER, 600),
            format!("{header}.{}.{signature}", URL_SAFE_NO_PAD.encode(changed)),
            format!("{none}.{claims}."),
            signed.to_owned(),
            "..".to_owned(),
            ".".repeat(100_000),
        ] {
            assert!(issuer.verify(&wrong, None).is_none());
        }
        let keys = issuer.key_set().unwrap();
        assert_eq!(keys["keys"][0]["x"].as_str().map(str::len), Some(43));
    }
}
