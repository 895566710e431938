//! Tests whether an address is public. Links that an agent wrote may lead only to public addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Says whether an address is one of the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = a == 0
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || a == 100 && (64..128).contains(&b) // shared address space of carriers
        || (a, b, c) == (192, 0, 0) // reserved for protocols
        || (a, b, c) == (192, 88, 99) // 6to4 relays, out of use
        || a == 198 && (b == 18 || b == 19) // reserved for benchmarks
        || a >= 224; // multicast, reserved, broadcast
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        [0, 0, 0, 0, 0, 0xffff, high, low] => embedded(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        // A Teredo address contains another address; documentation addresses belong to nobody.
        [0x2001, 0 | 0xdb8, ..] => false,
        [0x3fff, 0..=0x0fff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// Says whether a host name is reserved and never exists on the public network.
pub fn is_reserved_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let last = host.rsplit('.').next().unwrap_or_default();
    !host.contains('.') || ["localhost", "local", "internal", "invalid", "test", "onion"].contains(&last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (address, expected) in [
            ("93.184.216.34", true),
            ("1.1.1.1", true),
            ("100.63.255.255", true),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("100.64.0.1", false),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.32.0.1", true),
            ("192.0.0.8", false),
            ("192.0.2.1", false),
            ("192.168.0.1", false),
            ("198.19.0.1", false),
            ("198.51.100.7", false),
            ("203.0.113.9", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:2800:220:1::1", true),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:1.1.1.1", true),
            ("64:ff9b::10.0.0.1", false),
            ("2002:7f00:1::", false),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("3fff::1", false),
            ("fc00::1", false),
            ("fd12::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            let parsed: IpAddr = address.parse().unwrap_or_else(|_| panic!("{address}"));
            assert_eq!(is_public(parsed), expected, "{address}");
        }
    }

    #[test]
    fn names() {
        for (host, expected) in [
            ("example.org", false),
            ("localhost", true),
            ("a.localhost", true),
            ("h.invalid", true),
            ("printer.local", true),
            ("intranet", true),
            ("LOCALHOST.", true),
            ("local.example.org", false),
        ] {
            assert_eq!(is_reserved_name(host), expected, "{host}");
        }
    }
}
