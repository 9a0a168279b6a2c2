//! Tables by the Arrow C stream interface: pyarrow, polars, pandas and DuckDB read them without a copy.

use crate::error::Trouble;
use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float32Type, Float64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use arrow_select::take::take_record_batch;
use nvlab_table::{Column, Table};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A table.
#[pyclass(frozen, module = "nvlab._nvlab")]
pub struct Frame(pub RecordBatch);

impl From<Table> for Frame {
    fn from(table: Table) -> Frame {
        let (mut fields, mut arrays): (Vec<Field>, Vec<ArrayRef>) = Default::default();
        for Column { name, may_miss, values } in table.columns {
            let array: ArrayRef = match values {
                nvlab_table::Values::Flags(values) => Arc::new(BooleanArray::from(values)),
                nvlab_table::Values::Counts(values) => Arc::new(UInt64Array::from(values)),
                nvlab_table::Values::Numbers(values) => Arc::new(Float64Array::from(values)),
                nvlab_table::Values::Texts(values) => Arc::new(StringArray::from(values)),
            };
            fields.push(Field::new(name, array.data_type().clone(), may_miss));
            arrays.push(array);
        }
        let metadata: HashMap<String, String> = table.metadata.into_iter().collect();
        let schema = Schema::new_with_metadata(fields, metadata);
        Frame(RecordBatch::try_new(Arc::new(schema), arrays).expect("the columns have a value for each row"))
    }
}

impl Frame {
    /// The same table; an error if a column has values that results do not have.
    pub fn table(&self) -> Result<Table, Trouble> {
        let column = |(field, array): (&Arc<Field>, &ArrayRef)| {
            let values = match array.data_type() {
                DataType::Boolean => nvlab_table::Values::Flags(array.as_boolean().iter().collect()),
                DataType::UInt64 => {
                    nvlab_table::Values::Counts(array.as_primitive::<UInt64Type>().iter().collect())
                }
                DataType::UInt32 => {
                    let values = array.as_primitive::<UInt32Type>().iter();
                    nvlab_table::Values::Counts(values.map(|value| value.map(u64::from)).collect())
                }
                DataType::Float64 => {
                    nvlab_table::Values::Numbers(array.as_primitive::<Float64Type>().iter().collect())
                }
                DataType::Float32 => {
                    let values = array.as_primitive::<Float32Type>().iter();
                    nvlab_table::Values::Numbers(values.map(|value| value.map(f64::from)).collect())
                }
                DataType::Utf8 => {
                    let values = array.as_string::<i32>().iter();
                    nvlab_table::Values::Texts(values.map(|text| text.map(str::to_owned)).collect())
                }
                other => {
                    let name = field.name();
                    let why = format!("column `{name}` has values of {other}, which no table of results has");
                    return Err(Trouble::Input(why));
                }
            };
            Ok(Column { name: field.name().clone(), may_miss: field.is_nullable(), values })
        };
        let fields = self.0.schema_ref().fields().iter();
        let columns = fields.zip(self.0.columns()).map(column).collect::<Result<_, Trouble>>()?;
        let mut metadata: Vec<(String, String)> = {
            let pairs = self.0.schema_ref().metadata().iter();
            pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect()
        };
        // The schema of a table stands first in its file.
        metadata.sort_by_key(|(key, _)| (key != "nvlab.schema", key.clone()));
        Ok(Table { columns, metadata })
    }
}

/// What Arrow refuses, as an exception.
pub fn refused(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Frame {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows to answer with the table's own schema.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema_ref().as_ref()).map_err(refused)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The values of a column.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.0.column_by_name(name) {
            Some(column) => values(py, column),
            None => Err(PyKeyError::new_err(name.to_string())),
        }
    }

    /// Some rows of it, without a copy.
    fn rows(&self, start: usize, count: usize) -> Frame {
        let start = start.min(self.0.num_rows());
        Frame(self.0.slice(start, count.min(self.0.num_rows() - start)))
    }

    /// The rows at these places.
    fn take(&self, places: Vec<u32>) -> PyResult<Frame> {
        let places = UInt32Array::from(places);
        Ok(Frame(take_record_batch(&self.0, &places).map_err(refused)?))
    }

    /// The columns in which some row has a value; all of them if there are no rows.
    fn with_values(&self) -> PyResult<Frame> {
        let rows = self.0.num_rows();
        let has_values = |at: &usize| rows == 0 || self.0.column(*at).null_count() < rows;
        let kept: Vec<usize> = (0..self.0.num_columns()).filter(has_values).collect();
        Ok(Frame(self.0.project(&kept).map_err(refused)?))
    }

    /// A table of columns with names.
    #[staticmethod]
    fn of_columns(columns: Vec<(String, Values)>) -> PyResult<Frame> {
        let columns = columns.into_iter().map(|(name, values)| (name, values.array(), true));
        Ok(Frame(RecordBatch::try_from_iter_with_nullable(columns).map_err(refused)?))
    }

    /// Writes a Parquet file; equal tables give equal bytes.
    fn save(&self, path: PathBuf) -> Result<(), Trouble> {
        Ok(std::fs::write(path, self.table()?.parquet()?)?)
    }

    /// As an Arrow IPC stream.
    fn to_ipc<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut writer = StreamWriter::try_new(Vec::new(), self.0.schema_ref()).map_err(refused)?;
        writer.write(&self.0).and_then(|()| writer.finish()).map_err(refused)?;
        Ok(PyBytes::new(py, writer.get_ref()))
    }

    /// From an Arrow IPC stream of one batch.
    #[staticmethod]
    fn from_ipc(bytes: &[u8]) -> PyResult<Frame> {
        let mut reader = StreamReader::try_new(bytes, None).map_err(refused)?;
        let batch = reader.next().ok_or_else(|| PyValueError::new_err("the stream has no batch"))?;
        Ok(Frame(batch.map_err(refused)?))
    }
}

/// The values of a column, as Python has them; the first kind that all of them are.
#[derive(FromPyObject)]
enum Values {
    Flags(Vec<Option<bool>>),
    Counts(Vec<Option<u64>>),
    Numbers(Vec<Option<f64>>),
    Texts(Vec<Option<String>>),
}

impl Values {
    fn array(self) -> ArrayRef {
        match self {
            Values::Flags(values) => Arc::new(BooleanArray::from(values)),
            Values::Counts(values) => Arc::new(UInt64Array::from(values)),
            Values::Numbers(values) => Arc::new(Float64Array::from(values)),
            Values::Texts(values) => Arc::new(StringArray::from(values)),
        }
    }
}

fn values<'py>(py: Python<'py>, column: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    let count = column.len();
    match column.data_type() {
        DataType::Float64 => {
            column.as_primitive::<Float64Type>().iter().collect::<Vec<_>>().into_pyobject(py)
        }
        DataType::Float32 => {
            column.as_primitive::<Float32Type>().iter().collect::<Vec<_>>().into_pyobject(py)
        }
        DataType::UInt64 => column.as_primitive::<UInt64Type>().iter().collect::<Vec<_>>().into_pyobject(py),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().iter().collect::<Vec<_>>().into_pyobject(py),
        DataType::Boolean => column.as_boolean().iter().collect::<Vec<_>>().into_pyobject(py),
        DataType::Utf8 => column.as_string::<i32>().iter().collect::<Vec<_>>().into_pyobject(py),
        other => Err(PyValueError::new_err(format!("{count} values of {other} are read through Arrow only"))),
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Frame>()
}
