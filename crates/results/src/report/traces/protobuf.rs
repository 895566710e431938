//! Writes a request for a receiver of OpenTelemetry traces in the binary form of its protocol (Protocol Buffers).
//!
//! All receivers read this form, and not all read JSON. The tables below are those parts of OpenTelemetry's `trace.proto`,
//! `common.proto` and `resource.proto` that this program writes.

use serde_json::Value;

/// A field of a message: its key in JSON, its number in the binary form, and what it holds.
struct MessageField {
    key: &'static str,
    number: u64,
    holds: FieldType,
}

enum FieldType {
    Text,
    /// Bytes, which JSON has in hexadecimal.
    Bytes,
    Bool,
    /// A whole number, which JSON may have as text.
    Integer,
    /// A whole number of always eight bytes.
    Fixed64,
    Double,
    Message(&'static [MessageField]),
}

const fn field(key: &'static str, number: u64, holds: FieldType) -> MessageField {
    MessageField { key, number, holds }
}

const REQUEST: &[MessageField] = &[field("resourceSpans", 1, FieldType::Message(RESOURCE_SPANS))];
const RESOURCE_SPANS: &[MessageField] = &[
    field("resource", 1, FieldType::Message(RESOURCE)),
    field("scopeSpans", 2, FieldType::Message(SCOPE_SPANS)),
];
const RESOURCE: &[MessageField] = &[field("attributes", 1, FieldType::Message(KEY_VALUE))];
const SCOPE_SPANS: &[MessageField] =
    &[field("scope", 1, FieldType::Message(SCOPE)), field("spans", 2, FieldType::Message(SPAN))];
const SCOPE: &[MessageField] = &[field("name", 1, FieldType::Text), field("version", 2, FieldType::Text)];
const SPAN: &[MessageField] = &[
    field("traceId", 1, FieldType::Bytes),
    field("spanId", 2, FieldType::Bytes),
    field("parentSpanId", 4, FieldType::Bytes),
    field("name", 5, FieldType::Text),
    field("kind", 6, FieldType::Integer),
    field("startTimeUnixNano", 7, FieldType::Fixed64),
    field("endTimeUnixNano", 8, FieldType::Fixed64),
    field("attributes", 9, FieldType::Message(KEY_VALUE)),
    field("events", 11, FieldType::Message(EVENT)),
    field("status", 15, FieldType::Message(STATUS)),
];
const EVENT: &[MessageField] = &[
    field("timeUnixNano", 1, FieldType::Fixed64),
    field("name", 2, FieldType::Text),
    field("attributes", 3, FieldType::Message(KEY_VALUE)),
];
const STATUS: &[MessageField] = &[field("message", 2, FieldType::Text), field("code", 3, FieldType::Integer)];
const KEY_VALUE: &[MessageField] =
    &[field("key", 1, FieldType::Text), field("value", 2, FieldType::Message(ANY_VALUE))];
const ANY_VALUE: &[MessageField] = &[
    field("stringValue", 1, FieldType::Text),
    field("boolValue", 2, FieldType::Bool),
    field("intValue", 3, FieldType::Integer),
    field("doubleValue", 4, FieldType::Double),
];

/// Writes a request that is given in its JSON form.
pub fn encode_request(request: &Value) -> Vec<u8> {
    encode_message(request, REQUEST)
}

fn encode_message(message: &Value, fields: &[MessageField]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        match &message[field.key] {
            Value::Null => {}
            Value::Array(items) => items.iter().for_each(|item| encode_field(item, field, &mut out)),
            item => encode_field(item, field, &mut out),
        }
    }
    out
}

fn encode_field(value: &Value, field: &MessageField, out: &mut Vec<u8>) {
    match &field.holds {
        FieldType::Text => write_bytes(field, value.as_str().unwrap_or_default().as_bytes(), out),
        FieldType::Bytes => write_bytes(field, &bytes_of_hex(value.as_str().unwrap_or_default()), out),
        FieldType::Message(fields) => write_bytes(field, &encode_message(value, fields), out),
        FieldType::Bool => write_varint_field(field, u64::from(value == true), out),
        FieldType::Integer => write_varint_field(field, whole_number(value), out),
        FieldType::Fixed64 => write_eight_bytes(field, whole_number(value).to_le_bytes(), out),
        FieldType::Double => write_eight_bytes(field, value.as_f64().unwrap_or(0.0).to_le_bytes(), out),
    }
}

fn whole_number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}

fn bytes_of_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks_exact(2).filter_map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok()).collect()
}

/// Writes the number of a field with the way its value is written: 0 is a varint, 1 eight bytes, 2 a length and bytes.
fn write_tag(field: &MessageField, wire_type: u64, out: &mut Vec<u8>) {
    write_varint((field.number << 3) | wire_type, out);
}

fn write_varint_field(field: &MessageField, value: u64, out: &mut Vec<u8>) {
    write_tag(field, 0, out);
    write_varint(value, out);
}

fn write_eight_bytes(field: &MessageField, bytes: [u8; 8], out: &mut Vec<u8>) {
    write_tag(field, 1, out);
    out.extend(bytes);
}

fn write_bytes(field: &MessageField, bytes: &[u8], out: &mut Vec<u8>) {
    write_tag(field, 2, out);
    write_varint(bytes.len() as u64, out);
    out.extend(bytes);
}

fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Gives the number of spans that a receiver says it has refused. Its answer is a message whose first field is another
/// one, whose first field is the number.
pub fn rejected_spans(answer: &[u8]) -> u64 {
    let (Some(0x0a), Some(0x08)) = (answer.first(), answer.get(2)) else { return 0 };
    let mut number: u64 = 0;
    for (at, byte) in answer[3..].iter().take(9).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The bytes are those that the Python package `opentelemetry-proto` writes for the same request.
    #[test]
    fn a_request_has_the_bytes_of_the_protocol() {
        let request = json!({"resourceSpans": [{
            "resource": {"attributes": [{"key": "a", "value": {"stringValue": "é"}}]},
            "scopeSpans": [{"scope": {"name": "p", "version": "1"}, "spans": [{
                "traceId": "0102030405060708090a0b0c0d0e0f10",
                "spanId": "1112131415161718",
                "name": "n",
                "kind": 1,
                "startTimeUnixNano": "1",
                "endTimeUnixNano": "300",
                "attributes": [
                    {"key": "i", "value": {"intValue": "300"}},
                    {"key": "d", "value": {"doubleValue": 0.5}},
                    {"key": "b", "value": {"boolValue": true}},
                ],
                "events": [{"timeUnixNano": "2", "name": "e", "attributes": []}],
                "status": {"code": 2, "message": "m"},
            }]}],
        }]});
        let expected = EXPECTED.split_whitespace().collect::<String>();
        let found: String = encode_request(&request).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, expected);
    }

    const EXPECTED: &str = "\
        0a84010a0b0a090a016112040a02c3a912750a060a0170120131126b0a100102030405060708090a
        0b0c0d0e0f10120811121314151617182a016e3001390100000000000000412c010000000000004a
        080a0169120318ac024a0e0a0164120921000000000000e03f4a070a0162120210015a0c09020000
        00000000001201657a0512016d1802";

    #[test]
    fn refused_spans_are_counted() {
        for (answer, expected) in [
            (&[][..], 0),
            (&[0x0a, 0x00], 0),
            (&[0x0a, 0x02, 0x08, 0x05], 5),
            (&[0x0a, 0x03, 0x08, 0xac, 0x02], 300),
            (&[0x0a, 0x03, 0x12, 0x01, 0x61], 0),
            (b"{}", 0),
        ] {
            assert_eq!(rejected_spans(answer), expected, "{answer:?}");
        }
    }
}
