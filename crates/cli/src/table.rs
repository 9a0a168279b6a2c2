//! Lists, for users and for programs.

use nvlab_report::Format;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A column: its name for programs (the unit in it), its head for people.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: Cow<'static, str>,
    pub head: Cow<'static, str>,
    /// Numbers are aligned to the right.
    pub right: bool,
}

impl Column {
    pub const fn text(name: &'static str, head: &'static str) -> Column {
        Column { name: Cow::Borrowed(name), head: Cow::Borrowed(head), right: false }
    }
    pub const fn number(name: &'static str, head: &'static str) -> Column {
        Column { name: Cow::Borrowed(name), head: Cow::Borrowed(head), right: true }
    }
    /// Not shown to people.
    pub const fn for_programs(name: &'static str) -> Column {
        Column::text(name, "")
    }
}

/// A cell: its text for people, and its value.
#[derive(Clone, Debug)]
pub struct Cell {
    shown: String,
    value: Value,
}

impl Cell {
    /// A cell whose text is its value.
    pub fn text(text: impl Into<String>) -> Cell {
        let shown: String = text.into();
        Cell { value: Value::String(shown.clone()), shown }
    }
    /// A dash and no value if there is nothing.
    pub fn or_dash<T>(value: Option<T>, cell: impl FnOnce(T) -> Cell) -> Cell {
        value.map_or_else(|| Cell::new("-", Value::Null), cell)
    }
    /// A cell that shows people another text than its value.
    pub fn new(shown: impl Into<String>, value: impl Into<Value>) -> Cell {
        Cell { shown: shown.into(), value: value.into() }
    }
}

/// What a verb lists.
#[derive(Clone, Debug)]
pub struct Table {
    pub schema: &'static str,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn render(&self, format: Format, width: usize, color: bool) -> String {
        match format {
            Format::Human => self.for_people().human(width, color),
            Format::Markdown => self.for_people().markdown(),
            Format::Csv => self.csv(),
            Format::Json => {
                let rows: Vec<Value> = self.objects().collect();
                format!("{:#}\n", serde_json::json!({ "schema": self.schema, "rows": rows }))
            }
            Format::JsonLines => self.objects().map(|row| format!("{row}\n")).collect(),
        }
    }

    fn objects(&self) -> impl Iterator<Item = Value> + '_ {
        self.rows.iter().map(|row| {
            let pairs = self.columns.iter().zip(row);
            Value::Object(
                pairs.map(|(c, cell)| (c.name.to_string(), cell.value.clone())).collect::<Map<_, _>>(),
            )
        })
    }

    fn for_people(&self) -> Table {
        let is_shown: Vec<bool> = self.columns.iter().map(|column| !column.head.is_empty()).collect();
        let columns = self.columns.iter().filter(|column| !column.head.is_empty()).cloned().collect();
        let cells = |row: &Vec<Cell>| {
            row.iter().zip(&is_shown).filter(|(_, is)| **is).map(|(cell, _)| cell.clone()).collect()
        };
        Table { schema: self.schema, columns, rows: self.rows.iter().map(cells).collect() }
    }

    /// Columns two blanks apart; the last one is wrapped.
    fn human(&self, width: usize, color: bool) -> String {
        let count = |text: &str| text.chars().count();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|i| {
                let cells = self.rows.iter().map(|row| count(&row[i].shown));
                cells.chain([count(&self.columns[i].head)]).max().unwrap_or(0)
            })
            .collect();
        let last = self.columns.len() - 1;
        let indent: usize = widths[..last].iter().map(|width| width + 2).sum();
        let room = width.saturating_sub(indent).max(24);
        let line = |cells: &[&str]| {
            let mut text = String::new();
            for (i, cell) in cells.iter().enumerate().take(last) {
                let pad = " ".repeat(widths[i] - count(cell));
                text += &match self.columns[i].right {
                    true => format!("{pad}{cell}  "),
                    false => format!("{cell}{pad}  "),
                };
            }
            let mut wrapped = wrap(cells[last], room).into_iter();
            let first = wrapped.next().unwrap_or_default();
            let pad = if self.columns[last].right { widths[last].saturating_sub(count(&first)) } else { 0 };
            text += &format!("{}{first}", " ".repeat(pad));
            for more in wrapped {
                text += &format!("\n{}{more}", " ".repeat(indent));
            }
            text.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>()
        };
        let heads: Vec<&str> = self.columns.iter().map(|column| column.head.as_ref()).collect();
        let head = line(&heads);
        let mut text = if color { format!("\x1b[1m{}\x1b[0m\n", head.trim_end()) } else { head };
        for row in &self.rows {
            text += &line(&row.iter().map(|cell| cell.shown.as_str()).collect::<Vec<_>>());
        }
        text
    }

    fn markdown(&self) -> String {
        let escaped = |text: &str| text.replace('|', "\\|");
        let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = row(self.columns.iter().map(|column| escaped(&column.head)).collect());
        text += &row(self.columns.iter().map(|c| if c.right { "--:" } else { "---" }.to_string()).collect());
        for cells in &self.rows {
            text += &row(cells.iter().map(|cell| escaped(&cell.shown)).collect());
        }
        text
    }

    fn csv(&self) -> String {
        let mut text =
            self.columns.iter().map(|column| column.name.as_ref()).collect::<Vec<_>>().join(",") + "\n";
        for row in &self.rows {
            text += &(row.iter().map(|cell| csv_field(&cell.value)).collect::<Vec<_>>().join(",") + "\n");
        }
        text
    }
}

fn csv_field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.contains([',', '"', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Value::String(text) => text.clone(),
        list @ Value::Array(_) => csv_field(&Value::String(list.to_string())),
        other => other.to_string(),
    }
}

/// Lines of at most `width` characters, broken at blanks.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_string());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table {
            schema: "test/1",
            columns: vec![
                Column::text("name", "name"),
                Column::number("size_bytes", "size"),
                Column::text("about", "about"),
            ],
            rows: vec![
                vec![
                    Cell::text("a"),
                    Cell::new("4 KiB", 4096),
                    Cell::text("one, two three four five six seven"),
                ],
                vec![Cell::text("long|name"), Cell::new("1 B", 1), Cell::text("x")],
            ],
        }
    }

    #[test]
    fn a_table_for_people() {
        assert_eq!(
            table().render(Format::Human, 44, false),
            "name        size  about\n\
             a          4 KiB  one, two three four five\n\
             \x20                 six seven\n\
             long|name    1 B  x\n"
        );
        let colored = table().render(Format::Human, 44, true);
        assert!(colored.starts_with("\x1b[1mname        size  about\x1b[0m\na "), "{colored}");
    }

    #[test]
    fn a_table_for_programs() {
        let csv = table().render(Format::Csv, 80, false);
        assert_eq!(csv.lines().nth(1), Some("a,4096,\"one, two three four five six seven\""));
        let json: Value = serde_json::from_str(&table().render(Format::Json, 80, false)).unwrap();
        assert_eq!(json["rows"][1]["size_bytes"], 1);
        assert_eq!(table().render(Format::JsonLines, 80, false).lines().count(), 2);
        assert!(table().render(Format::Markdown, 80, false).contains("| long\\|name | 1 B | x |"));
    }
}
