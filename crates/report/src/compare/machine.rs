//! A comparison for other programs: Markdown, CSV, JSON, Parquet. All but Markdown are in base units.

use super::{Cell, Comparison, Parts, Row};
use crate::document::{self, COMPARISON, COMPARISON_ROW, ComparisonRow, Design, MetricEntry, Value};
use nvlab_table::{Column, Table, Values};
use std::io;

impl Comparison {
    pub(super) fn markdown(&self) -> String {
        let heads = self.columns.iter().map(|column| column.title.clone());
        let mut text = match self.shared.as_str() {
            "" => String::new(),
            shared => format!("designs: {shared}\n\n"),
        };
        text += &markdown_row(std::iter::once("design".to_string()).chain(heads));
        text += &format!("|---|{}\n", "---:|".repeat(self.columns.len()));
        for row in &self.rows {
            let cells = row.cells.iter().zip(&self.columns).map(|(cell, column)| {
                let parts = cell.parts(column.unit);
                parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" ")
            });
            text += &markdown_row(std::iter::once(row.name.clone()).chain(cells));
        }
        for line in &self.prepared {
            text += &format!("\n{line}\n");
        }
        for doubt in &self.doubts {
            text += &format!("\n! {doubt}\n");
        }
        text
    }

    /// A missing value is an empty field; an interval of `inf`: the runs are too short to say.
    pub(super) fn csv(&self) -> String {
        let mut heads = vec!["design".to_string(), "seeds".to_string()];
        for column in &self.columns {
            let name = column.column();
            heads.push(name.clone());
            heads.extend([format!("{name}_interval"), format!("{name}_same")]);
        }
        heads.push("prepared".to_string());
        let mut text = csv_row(&heads);
        for row in &self.rows {
            let mut fields = vec![row.name.clone(), row.seeds.len().to_string()];
            for cell in &row.cells {
                let value = |get: fn(&Cell) -> String| cell.as_ref().map_or(String::new(), get);
                fields.push(value(|cell| cell.estimate.mean.to_string()));
                fields.push(value(|cell| cell.estimate.interval.to_string()));
                fields.push(value(|cell| cell.same.to_string()));
            }
            fields.push(row.prepared.clone());
            text += &csv_row(&fields);
        }
        text
    }

    /// The columns of [`Comparison::csv`].
    pub(super) fn parquet(&self) -> io::Result<Vec<u8>> {
        let texts = |get: fn(&Row) -> &str| {
            Values::Texts(self.rows.iter().map(|row| Some(get(row).to_string())).collect())
        };
        let seeds = self.rows.iter().map(|row| Some(row.seeds.len() as u64)).collect();
        let mut columns =
            vec![Column::new("design", texts(|row| &row.name)), Column::new("seeds", Values::Counts(seeds))];
        for (at, column) in self.columns.iter().enumerate() {
            let cells = || self.rows.iter().map(|row| row.cells[at].as_ref());
            let numbers =
                |get: fn(&Cell) -> f64| Values::Numbers(cells().map(|cell| cell.map(get)).collect());
            let name = column.column();
            let same = Values::Flags(cells().map(|cell| cell.map(|cell| cell.same)).collect());
            columns.push(Column::new(name.clone(), numbers(|cell| cell.estimate.mean)));
            columns.push(Column::new(format!("{name}_interval"), numbers(|cell| cell.estimate.interval)));
            columns.push(Column::new(format!("{name}_same"), same));
        }
        columns.push(Column::new("prepared", texts(|row| &row.prepared)));
        let metadata = vec![("nvlab.schema".to_string(), COMPARISON.to_string())];
        Table { columns, metadata }.parquet()
    }

    pub(super) fn json(&self) -> String {
        let document = document::Comparison {
            schema: COMPARISON,
            workload: &self.workload,
            baseline: &self.rows[0].name,
            metrics: self.columns.iter().map(MetricEntry::of).collect(),
            designs: self.rows.iter().map(|row| self.design(row)).collect(),
            sentences: self.sentences(),
            notes: &self.notes,
        };
        serde_json::to_string_pretty(&document).expect("a comparison is plain data") + "\n"
    }

    pub(super) fn json_lines(&self) -> String {
        let line = |row: &Row| {
            let (workload, design) = (self.workload.as_str(), self.design(row));
            let row = ComparisonRow { schema: COMPARISON_ROW, workload, design };
            serde_json::to_string(&row).expect("a comparison is plain data") + "\n"
        };
        self.rows.iter().map(line).collect()
    }

    fn design<'a>(&self, row: &'a Row) -> Design<'a> {
        let values = self.columns.iter().zip(&row.cells);
        Design {
            design: &row.name,
            seeds: &row.seeds,
            keys: &row.keys,
            prepared: &row.prepared,
            values: values.map(|(column, cell)| (column.column(), cell.as_ref().map(value))).collect(),
        }
    }
}

fn value(cell: &Cell) -> Value<'_> {
    Value {
        mean: cell.estimate.mean,
        interval: Some(cell.estimate.interval).filter(|interval| interval.is_finite()),
        values: &cell.values,
        ratio: cell.ratio.map(|ratio| ratio.mean),
        ratio_interval: cell.ratio.map(|ratio| ratio.interval).filter(|interval| interval.is_finite()),
        same: cell.same,
        doubts: &cell.doubts,
    }
}

fn markdown_row(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// A row of comma-separated values with its line end; fields are quoted where need be.
pub fn csv_row(fields: &[String]) -> String {
    let quoted = |field: &String| match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.clone(),
    };
    format!("{}\n", fields.iter().map(quoted).collect::<Vec<_>>().join(","))
}
