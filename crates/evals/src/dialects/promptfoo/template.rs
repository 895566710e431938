//! Templates of promptfoo: texts with variables like `{{name}}`. Only variables and a few filters are known; a text with
//! anything else has no meaning here, and the error says why.

use serde_json::Value;

/// The variables of a test, in the order in which the file has them.
pub type TestVariables = Vec<(String, Value)>;

/// Gives the value of a variable.
pub fn find_variable<'v>(variables: &'v TestVariables, name: &str) -> Option<&'v Value> {
    variables.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// Writes a text with the values of its variables. A variable that is not there is an empty text, as in promptfoo.
pub fn render(text: &str, variables: &TestVariables) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(tag) = ["{%", "{#"].iter().find(|tag| rest.starts_with(**tag)) {
            return Err(format!("a text has the template tag \"{tag}\", which is not known here"));
        }
        let Some(inside) = rest.strip_prefix("{{") else {
            out.push('{');
            rest = &rest[1..];
            continue;
        };
        let Some((expression, after)) = inside.split_once("}}") else {
            return Err("a text has a \"{{\" without its \"}}\"".to_owned());
        };
        out.push_str(&evaluate(expression.trim(), variables)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Replaces the variables in the values of variables. Five rounds are enough for values that people write.
pub fn resolve(variables: &mut TestVariables) -> Result<(), String> {
    for (_, value) in variables.iter_mut() {
        if let Value::String(text) = value
            && text.ends_with('\n')
        {
            text.pop();
        }
    }
    for _ in 0..5 {
        let known = variables.clone();
        for (_, value) in variables.iter_mut() {
            if let Value::String(text) = value
                && text.contains("{{")
            {
                *text = render(text, &known)?;
            }
        }
        if *variables == known {
            return Ok(());
        }
    }
    Err("its variables name each other without end".to_owned())
}

fn evaluate(expression: &str, variables: &TestVariables) -> Result<String, String> {
    let mut parts = split_filters(expression).into_iter();
    let path = parts.next().unwrap_or_default();
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "_-$".contains(letter))
    };
    let names: Vec<&str> = path.split('.').collect();
    if !names.iter().all(|name| is_name(name)) {
        return Err(format!("a text has the expression {{{{{expression}}}}}, which is not known here"));
    }
    let mut found = find_variable(variables, names[0]);
    for name in &names[1..] {
        found = found.and_then(|value| value.get(name));
    }
    let mut text = match found {
        // The environment of the user is not read: results would depend on it.
        None if names[0] == "env" && !expression.contains("default") => {
            return Err(format!("a text has {{{{{expression}}}}}, and the environment is not read here"));
        }
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => Some(value.to_string()),
        Some(Value::Array(_) | Value::Object(_)) => {
            return Err(format!("the variable \"{path}\" in a text is no text"));
        }
    };
    for filter in parts {
        text = apply_filter(filter, text, expression)?;
    }
    Ok(text.unwrap_or_default())
}

/// Splits an expression at the bars that are not in quotes.
fn split_filters(expression: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut quote = None;
    let mut begin = 0;
    for (at, letter) in expression.char_indices() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, '|') => {
                parts.push(expression[begin..at].trim());
                begin = at + 1;
            }
            (None | Some(_), _) => {}
        }
    }
    parts.push(expression[begin..].trim());
    parts
}

fn apply_filter(filter: &str, text: Option<String>, expression: &str) -> Result<Option<String>, String> {
    let unknown =
        || format!("a text has the expression {{{{{expression}}}}}, whose filter is not known here");
    let argument = filter.strip_prefix("default(").and_then(|rest| rest.strip_suffix(')'));
    if let Some(argument) = argument {
        let (value, also_empty) = match argument.rsplit_once(',') {
            Some((value, "true" | " true")) => (value.trim(), true),
            Some(_) | None => (argument.trim(), false),
        };
        let quoted = ['\'', '"']
            .into_iter()
            .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
            .filter(|value| !value.contains(['\'', '"', '\\']));
        let value = quoted.ok_or_else(unknown)?.to_owned();
        return Ok(Some(text.filter(|text| !also_empty || !text.is_empty()).unwrap_or(value)));
    }
    let text = text.unwrap_or_default();
    match filter {
        "trim" => Ok(Some(text.trim().to_owned())),
        "upper" => Ok(Some(text.to_uppercase())),
        "lower" => Ok(Some(text.to_lowercase())),
        "safe" => Ok(Some(text)),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn variables_are_replaced_and_other_templates_refused() {
        let variables = vec![
            ("name".to_owned(), json!("Ada")),
            ("n".to_owned(), json!(3)),
            ("user".to_owned(), json!({"city": "Ulm"})),
            ("empty".to_owned(), json!("")),
        ];
        for (text, expected) in [
            ("Hi {{name}}, {{ n }} times", Some("Hi Ada, 3 times")),
            ("{{user.city}}{{missing}}", Some("Ulm")),
            ("{{ missing | default('x | y') }}", Some("x | y")),
            ("{{ empty | default(\"x\") }}", Some("")),
            ("{{ empty | default('x', true) }}", Some("x")),
            ("{{ env.HOME | default('here') }}", Some("here")),
            ("{{ name | upper }}", Some("ADA")),
            ("{ \"a\": {} }", Some("{ \"a\": {} }")),
            ("{% if name %}x{% endif %}", None),
            ("{{ name | dump }}", None),
            ("{{ name[0] }}", None),
            ("{{user}}", None),
            ("{{ env.HOME }}", None),
            ("{{name", None),
        ] {
            assert_eq!(render(text, &variables).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn variables_may_name_other_variables() {
        let mut variables = vec![
            ("a".to_owned(), json!("x {{b}}\n")),
            ("b".to_owned(), json!("{{c}}")),
            ("c".to_owned(), json!("y")),
        ];
        assert_eq!(resolve(&mut variables), Ok(()));
        assert_eq!(variables[0].1, json!("x y"));
        let mut circle = vec![("a".to_owned(), json!("a{{b}}")), ("b".to_owned(), json!("b{{a}}"))];
        assert!(resolve(&mut circle).is_err());
    }
}
