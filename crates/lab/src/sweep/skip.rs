//! Rules for points that are not run: `ftl.clean.kind == 'fifo' and ftl.utilization > 90 %`.
//!
//! Comparisons joined by `and`, and groups of these joined by `or`; operators `< <= > >= == !=`. On the left a key that an
//! axis varies, `workload`, `design` or `seed`; on the right a value, in quotes if it contains blanks. Values that are
//! numbers with units are compared as numbers.

use super::space::{Point, Space, number_of};

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Skip {
    /// Alternatives; one holds if all its comparisons do.
    any: Vec<Vec<Comparison>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Comparison {
    key: String,
    operator: &'static str,
    value: String,
}

/// Longer ones first: `<=` begins with `<`.
const OPERATORS: [&str; 6] = ["<=", ">=", "==", "!=", "<", ">"];

impl Skip {
    /// Reads a rule; its keys must be among those of `space`.
    pub fn parse(text: &str, space: &Space) -> Result<Skip, String> {
        let alternative = |text: &str| {
            split(text, " and ").iter().map(|text| Comparison::parse(text, space)).collect::<Result<_, _>>()
        };
        let any = split(text, " or ").iter().map(|text| alternative(text)).collect::<Result<_, _>>()?;
        Ok(Skip { any })
    }

    /// True if a point should not be run.
    pub fn holds(&self, space: &Space, point: &Point) -> bool {
        self.any.iter().any(|all| all.iter().all(|comparison| comparison.holds(space, point)))
    }
}

impl Comparison {
    fn parse(text: &str, space: &Space) -> Result<Comparison, String> {
        let found = text
            .find(['<', '>', '=', '!'])
            .and_then(|at| Some((at, OPERATORS.into_iter().find(|sign| text[at..].starts_with(sign))?)));
        let Some((at, operator)) = found else {
            let operators = OPERATORS.join(" ");
            return Err(format!("`{}`: write KEY OPERATOR VALUE, with one of {operators}", text.trim()));
        };
        let key = text[..at].trim().to_string();
        let value = text[at + operator.len()..].trim();
        let value = value.strip_prefix(['\'', '"']).map_or(value, |rest| rest.trim_end_matches(['\'', '"']));
        let known = space.keys();
        if !known.contains(&key) {
            return Err(format!("no axis varies `{key}`; the axes vary {}", known.join(", ")));
        }
        let numbers = space.values_of(&key).iter().all(|value| number_of(value).is_some());
        if operator.starts_with(['<', '>']) && !(numbers && number_of(value).is_some()) {
            return Err(format!("`{}`: `{operator}` compares numbers", text.trim()));
        }
        Ok(Comparison { key, operator, value: value.to_string() })
    }

    fn holds(&self, space: &Space, point: &Point) -> bool {
        let Some(value) = space.value_at(point, &self.key) else { return false };
        let same = value == self.value;
        let (equal, order) = match (number_of(&value), number_of(&self.value)) {
            (Some(left), Some(right)) => (same || left == right, left.partial_cmp(&right)),
            _ => (same, None),
        };
        match self.operator {
            "==" => equal,
            "!=" => !equal,
            "<" => order.is_some_and(|order| order.is_lt()),
            "<=" => order.is_some_and(|order| order.is_le()),
            ">" => order.is_some_and(|order| order.is_gt()),
            _ => order.is_some_and(|order| order.is_ge()),
        }
    }
}

/// Splits a text at a word, except inside quotes.
fn split<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let (mut parts, mut from, mut quote) = (Vec::new(), 0, None);
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if at >= from && text[at..].starts_with(word) => {
                parts.push(&text[from..at]);
                from = at + word.len();
            }
            None => {}
        }
    }
    parts.push(&text[from..]);
    parts
}
