//! Options of a table in words.

use nvlab_trace::{ReadOptions, TableSpec};

/// What is said of a table by words such as `columns=a,b separator=tab`.
pub fn said(words: &str) -> Result<ReadOptions, String> {
    let pairs: Vec<(&str, &str)> = words.split_whitespace().filter_map(|word| word.split_once('=')).collect();
    let value = |key: &str| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let table = TableSpec::parse(value).map_err(|(key, allowed)| format!("{key}: {allowed}"))?;
    Ok(ReadOptions { table, ..ReadOptions::default() })
}
