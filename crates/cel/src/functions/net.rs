//! IP addresses and networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Native, no_overload};
use crate::meter::Meter;
use crate::value::{Eval, Value, error, quote};

/// An address with the length of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

pub(super) fn native(function: &str) -> Option<Native> {
    Some(match function {
        "ip" => ip,
        "isIP" => |_, _, args| match args {
            [Value::String(text)] => Ok(Value::Bool(parse_ip(text).is_ok())),
            _ => no_overload("isIP", args),
        },
        "ip.isCanonical" => |_, _, args| match args {
            [Value::String(text)] => match parse_ip(text) {
                Ok(ip) => Ok(Value::Bool(ip.to_string() == **text)),
                Err(why) => error(why),
            },
            _ => no_overload("ip.isCanonical", args),
        },
        "family" => |_, _, args| of_ip("family", args, |ip| Value::Int(if ip.is_ipv4() { 4 } else { 6 })),
        "isUnspecified" => |_, _, args| of_ip("isUnspecified", args, |ip| Value::Bool(ip.is_unspecified())),
        "isLoopback" => |_, _, args| of_ip("isLoopback", args, |ip| Value::Bool(ip.is_loopback())),
        "isLinkLocalMulticast" => {
            |_, _, args| of_ip("isLinkLocalMulticast", args, |ip| Value::Bool(is_link_local_multicast(ip)))
        }
        "isLinkLocalUnicast" => {
            |_, _, args| of_ip("isLinkLocalUnicast", args, |ip| Value::Bool(is_link_local_unicast(ip)))
        }
        "isGlobalUnicast" => {
            |_, _, args| of_ip("isGlobalUnicast", args, |ip| Value::Bool(is_global_unicast(ip)))
        }
        "cidr" => |_, _, args| match args {
            [Value::String(text)] => network(text),
            _ => no_overload("cidr", args),
        },
        "isCIDR" => |_, _, args| match args {
            [Value::String(text)] => Ok(Value::Bool(parse_cidr(text).is_ok())),
            _ => no_overload("isCIDR", args),
        },
        "containsIP" => contains_ip,
        "containsCIDR" => contains_cidr,
        "prefixLength" => |_, _, args| match args {
            [Value::Cidr(cidr)] => Ok(Value::Int(cidr.prefix.into())),
            _ => no_overload("prefixLength", args),
        },
        "masked" => |_, _, args| match args {
            [Value::Cidr(cidr)] => Ok(Value::Cidr(cidr.masked())),
            _ => no_overload("masked", args),
        },
        _ => return None,
    })
}

fn ip<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    match args {
        [Value::Cidr(cidr)] => Ok(Value::Ip(cidr.address)),
        [Value::String(text)] => address(text),
        _ => no_overload("ip", args),
    }
}

fn address<'a>(text: &str) -> Eval<'a> {
    parse_ip(text).map_or_else(error, |ip| Ok(Value::Ip(ip)))
}

fn network<'a>(text: &str) -> Eval<'a> {
    match parse_cidr(text) {
        Ok(cidr) => Ok(Value::Cidr(cidr)),
        Err(why) => error(format!("network address parse error during conversion from string: {why}")),
    }
}

fn of_ip<'a>(function: &str, args: &[Value<'a>], map: fn(IpAddr) -> Value<'a>) -> Eval<'a> {
    match args {
        [Value::Ip(ip)] => Ok(map(*ip)),
        _ => no_overload(function, args),
    }
}

fn contains_ip<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let (cidr, ip) = match args {
        [Value::Cidr(cidr), Value::Ip(ip)] => (cidr, *ip),
        [Value::Cidr(cidr), Value::String(text)] => match parse_ip(text) {
            Ok(ip) => (cidr, ip),
            Err(_) => return error("no such overload"),
        },
        _ => return no_overload("containsIP", args),
    };
    Ok(Value::Bool(cidr.contains(ip)))
}

fn contains_cidr<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let (cidr, other) = match args {
        [Value::Cidr(cidr), Value::Cidr(other)] => (cidr, *other),
        [Value::Cidr(cidr), Value::String(text)] => match network(text)? {
            Value::Cidr(other) => (cidr, other),
            _ => return error("no such overload"),
        },
        _ => return no_overload("containsCIDR", args),
    };
    Ok(Value::Bool(cidr.prefix <= other.prefix && cidr.contains(other.address)))
}

impl Cidr {
    fn bits(address: IpAddr) -> (u128, u8) {
        match address {
            IpAddr::V4(ip) => (u128::from(ip.to_bits()), 32),
            IpAddr::V6(ip) => (ip.to_bits(), 128),
        }
    }

    fn contains(&self, ip: IpAddr) -> bool {
        let ((a, width), (b, other)) = (Self::bits(self.address), Self::bits(ip));
        let low = u32::from(width - self.prefix);
        width == other && a.checked_shr(low).unwrap_or(0) == b.checked_shr(low).unwrap_or(0)
    }

    fn masked(self) -> Self {
        let (bits, width) = Self::bits(self.address);
        let low = u32::from(width - self.prefix);
        let bits = bits.checked_shr(low).and_then(|bits| bits.checked_shl(low)).unwrap_or(0);
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(bits).unwrap_or(0))),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        };
        Self { address, prefix: self.prefix }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Parses an address as Kubernetes allows it: without a zone, and not IPv4 mapped into IPv6.
fn parse_ip(text: &str) -> Result<IpAddr, String> {
    let ip = parse_address(text).map_err(|why| {
        format!("IP Address {} parse error during conversion from string: {why}", quote(text))
    })?;
    let Some(ip) = ip else {
        return Err(format!("IP address {} with zone value is not allowed", quote(text)));
    };
    if is_mapped(ip) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
    }
    Ok(ip)
}

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

/// Returns `None` for an address with a zone.
fn parse_address(text: &str) -> Result<Option<IpAddr>, String> {
    let reject = |why: &str| Err(format!("ParseAddr({}): {why}", quote(text)));
    match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => match parse_v4(text) {
            Ok(ip) => Ok(Some(IpAddr::V4(ip))),
            Err(why) => reject(&why),
        },
        Some(b':') => {
            let (address, zone) =
                text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
            if zone == Some("") {
                return reject("zone must be a non-empty string");
            }
            match address.parse::<Ipv6Addr>() {
                Ok(_) if zone.is_some() => Ok(None),
                Ok(ip) => Ok(Some(IpAddr::V6(ip))),
                Err(_) => reject("unable to parse IP"),
            }
        }
        Some(_) => reject("missing IPv6 address"),
        None => reject("unable to parse IP"),
    }
}

fn parse_v4(text: &str) -> Result<Ipv4Addr, String> {
    let mut octets = [0u8; 4];
    let (mut field, mut digits, mut value) = (0, 0, 0u32);
    for (i, c) in text.char_indices() {
        match c {
            '0'..='9' => {
                if digits == 1 && value == 0 {
                    return Err("IPv4 field has octet with leading zero".to_owned());
                }
                value = value * 10 + c.to_digit(10).unwrap_or(0);
                digits += 1;
                if value > 255 {
                    return Err("IPv4 field has value >255".to_owned());
                }
            }
            '.' => {
                if digits == 0 || i + 1 == text.len() {
                    let at = quote(&text[i..]);
                    return Err(format!("IPv4 field must have at least one digit (at {at})"));
                }
                if field == 3 {
                    return Err("IPv4 address too long".to_owned());
                }
                octets[field] = u8::try_from(value).unwrap_or(255);
                field += 1;
                (digits, value) = (0, 0);
            }
            _ => return Err(format!("unexpected character (at {})", quote(&text[i..]))),
        }
    }
    if field < 3 {
        return Err("IPv4 address too short".to_owned());
    }
    octets[3] = u8::try_from(value).unwrap_or(255);
    Ok(Ipv4Addr::from(octets))
}

fn parse_cidr(text: &str) -> Result<Cidr, String> {
    let why = "network address parse error during conversion from string";
    let reject = |reason: String| Err(format!("{why}: netip.ParsePrefix({}): {reason}", quote(text)));
    let Some((address, bits)) = text.rsplit_once('/') else { return reject("no '/'".to_owned()) };
    let address = match parse_address(address) {
        Ok(Some(address)) => address,
        Ok(None) => return reject("IPv6 zones cannot be present in a prefix".to_owned()),
        Err(reason) => return reject(reason),
    };
    let plain = !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && (bits == "0" || !bits.starts_with('0'));
    if !plain {
        return reject(format!("bad bits after slash: {}", quote(bits)));
    }
    let width = if address.is_ipv4() { 32 } else { 128 };
    let Some(prefix) = bits.parse::<u8>().ok().filter(|prefix| *prefix <= width) else {
        return reject("prefix length out of range".to_owned());
    };
    if is_mapped(address) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
    }
    Ok(Cidr { address, prefix })
}

fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_global_unicast(ip: IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !(broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local_unicast(ip))
}
