//! Finds the secrets of an environment, and the forms in which each may be written.

use std::collections::BTreeMap;

use serde_json::Value;

/// The shortest value that counts as a secret. Shorter ones would match by accident.
const SHORTEST_SECRET: usize = 8;

/// The shortest text in a JSON document, and the shortest line of a text of several lines, that counts as a secret of its
/// own. Names and scopes are shorter.
pub const SHORTEST_TOKEN: usize = 20;

/// Parts of names of variables that hold a secret.
const TELLING_PARTS: [&str; 9] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "COOKIE", "BEARER"];

/// Endings of names of variables that hold a secret.
const TELLING_ENDINGS: [&str; 4] = ["_PASS", "_PWD", "_PAT", "_AUTH"];

/// Gives the secrets in an environment: values of variables whose names say so or that are `declared`, and passwords in
/// addresses.
pub fn secrets_of(environment: &BTreeMap<String, String>, declared: &[String]) -> Vec<String> {
    let mut secrets = Vec::new();
    for (name, value) in environment {
        let upper = name.to_uppercase();
        let is_telling = TELLING_PARTS.iter().any(|part| upper.contains(part))
            || TELLING_ENDINGS.iter().any(|ending| upper.ends_with(ending));
        if is_telling || declared.contains(name) {
            secrets.extend(parts_of_secret(value));
        }
        secrets.extend(secrets_of_address(value));
    }
    secrets.retain(|secret| secret.len() >= SHORTEST_SECRET);
    secrets
}

/// Gives a secret and the parts of it that are secrets of their own: the long lines of a key, the texts of a JSON
/// document.
pub fn parts_of_secret(value: &str) -> Vec<String> {
    let mut parts = vec![value.to_owned(), value.trim().to_owned()];
    let is_long = |line: &&str| line.len() >= SHORTEST_TOKEN && !line.starts_with("-----");
    if value.trim().contains('\n') {
        parts.extend(value.lines().map(str::trim).filter(is_long).map(str::to_owned));
    }
    if let Ok(document @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(value) {
        collect_tokens(&document, &mut parts);
    }
    parts
}

/// Collects the texts of a JSON document that are long enough to be tokens, with the lines of texts of several lines.
pub fn collect_tokens(value: &Value, secrets: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() >= SHORTEST_TOKEN => {
            secrets.push(text.clone());
            let lines = text.lines().map(str::trim);
            let is_long = |line: &&str| line.len() >= SHORTEST_TOKEN && !line.starts_with("-----");
            secrets.extend(lines.filter(is_long).map(str::to_owned));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_tokens(item, secrets)),
        Value::Object(entries) => entries.values().for_each(|value| collect_tokens(value, secrets)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Gives the password and the keys in an address like `postgres://user:password@host/?token=…`.
fn secrets_of_address(value: &str) -> Vec<String> {
    let Some((_, rest)) = value.split_once("://") else { return Vec::new() };
    let host_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let mut secrets = Vec::new();
    if let Some((user, _)) = rest[..host_end].rsplit_once('@') {
        let password = user.split_once(':').map_or(user, |(_, password)| password);
        secrets.extend([password.to_owned(), decode_percent(password)]);
    }
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let upper = name.to_uppercase();
        if upper == "SIG" || TELLING_PARTS.iter().any(|part| upper.contains(part)) {
            secrets.extend([value.to_owned(), decode_percent(value)]);
        }
    }
    secrets
}

/// Gives the forms in which a secret may be written: as it is, in JSON, in JSON inside JSON, in an address, and in
/// base64 at any place of a longer text.
pub fn forms_of(secret: &str) -> Vec<Vec<u8>> {
    let mut forms: Vec<String> = vec![secret.to_owned()];
    for escape in [escape_json, escape_json_ascii, |text: &str| escape_json(text).replace('/', "\\/")] {
        let once = escape(secret);
        forms.push(escape(&once));
        forms.push(once);
    }
    for kept in ["-_.~", "-_.~!'()*"] {
        let upper = encode_percent(secret, kept);
        let form = upper.replace("%20", "+");
        forms.extend([lower_percent(&upper), lower_percent(&form), form]);
        forms.push(upper);
    }
    for offset in 0..3 {
        let core = base64_core(secret.as_bytes(), offset);
        forms.push(core.replace('+', "-").replace('/', "_"));
        forms.push(core.replace('/', "\\/"));
        forms.push(core);
    }
    forms.retain(|form| form.len() >= SHORTEST_SECRET);
    forms.into_iter().map(String::into_bytes).collect()
}

/// Writes a text as JSON does inside quotes.
fn escape_json(text: &str) -> String {
    let quoted = Value::String(text.to_owned()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Writes a text as JSON inside quotes, with nothing but ASCII.
fn escape_json_ascii(text: &str) -> String {
    let mut escaped = String::new();
    for character in escape_json(text).chars() {
        match character.is_ascii() {
            true => escaped.push(character),
            false => {
                let mut units = [0; 2];
                let units = character.encode_utf16(&mut units);
                units.iter().for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}")));
            }
        }
    }
    escaped
}

fn encode_percent(text: &str, kept: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn lower_percent(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut lower = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(part.len().min(2));
        lower.push('%');
        lower.push_str(&digits.to_lowercase());
        lower.push_str(rest);
    }
    lower
}

fn decode_percent(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Gives the characters of base64 that depend only on the secret, where so many other bytes are before it.
fn base64_core(secret: &[u8], offset: usize) -> String {
    let bytes: Vec<u8> = std::iter::repeat_n(0, offset).chain(secret.iter().copied()).collect();
    let (first, last) = ((offset * 8).div_ceil(6), bytes.len() * 8 / 6);
    let six_bits = |at: usize| {
        let (byte, shift) = (at * 6 / 8, at * 6 % 8);
        let high = u16::from(bytes[byte]) << 8;
        let two = high | bytes.get(byte + 1).copied().map_or(0, u16::from);
        usize::from((two >> (10 - shift)) & 0x3f)
    };
    (first..last).map(|at| char::from(BASE64[six_bits(at)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_a_secret_is_found_at_any_place() {
        // "xsecret-value!" and so on, written by another program.
        for (text, encoded) in [
            ("secret-value!", "c2VjcmV0LXZhbHVlIQ=="),
            ("xsecret-value!", "eHNlY3JldC12YWx1ZSE="),
            ("xysecret-value!", "eHlzZWNyZXQtdmFsdWUh"),
        ] {
            let found = (0..3).filter(|offset| encoded.contains(&base64_core(b"secret-value!", *offset)));
            assert_eq!(found.count(), 1, "{text}");
        }
    }

    #[test]
    fn passwords_in_addresses_are_secrets_and_plain_addresses_are_not() {
        let secrets = |value: &str| secrets_of(&[("DATABASE_URL".to_owned(), value.to_owned())].into(), &[]);
        assert_eq!(secrets("postgres://ann:pa%24sword1@db.example/x"), ["pa%24sword1", "pa$sword1"]);
        assert_eq!(secrets("https://api.example/?a=1&api_key=abcdefgh1"), ["abcdefgh1", "abcdefgh1"]);
        assert_eq!(secrets("https://api.example/v1@latest"), [""; 0]);
    }
}
