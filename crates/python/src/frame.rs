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
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take_record_batch;
use nvlab_run::columns_out::parquet_of;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use std::path::PathBuf;
use std::sync::Arc;

/// A table.
#[pyclass(frozen, module = "nvlab._nvlab")]
pub struct Frame(pub RecordBatch);

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
        Ok(std::fs::write(path, parquet_of(&self.0)?)?)
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
