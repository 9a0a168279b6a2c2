//! Compiling source files into a persistent heap, a transaction for each file: [`crate::compiler`] as a workload.
//!
//! The first transaction makes the empty heap and its index; then one follows for each file. Changed words that touch are
//! one range. [`super::compiler`] has the shape and size of the paper's compiler instead.

use super::{Changes, DurableWorkload};
use crate::arrivals::{Arrivals, Pace};
use crate::compiler::{Image, Source, Survey, compile, create, own_sources, sources_in};
use crate::words::Words;
use crate::{Pacing, Span, Time, Workload, WorkloadError};
use nvlab_units::quantity::{self, exact_span, told_bytes};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// The first word of the text.
pub const KIND: &str = "compile";
const KEYS: [&str; 2] = ["sources", "cpu"];
/// The heap has room for so many bytes for each byte of source, and for the index. Measured: 3 with this workspace's files.
const HEAP_PER_SOURCE: usize = 8;
const HEAP_BYTES_MIN: usize = 1 << 20;

/// The compilation before it is opened on a memory.
#[derive(Clone, Debug, PartialEq)]
pub struct CompileConfig {
    /// The folder with the files; `None` for a snapshot of this workspace's own.
    pub folder: Option<PathBuf>,
    /// Computing for each file.
    pub cpu: Span,
}

impl CompileConfig {
    /// Reads a text such as `'compile sources=crates cpu=670ms'`.
    pub fn parse(text: &str) -> Result<CompileConfig, WorkloadError> {
        let words = Words::new(text, &KEYS, &[])?;
        Ok(CompileConfig {
            folder: words.value("sources").map(PathBuf::from),
            cpu: words.quantity("cpu", quantity::span)?.unwrap_or(Span::from_ms(670)),
        })
    }

    fn sources(&self) -> Result<Vec<Source>, WorkloadError> {
        match &self.folder {
            Some(folder) => sources_in(folder),
            None => Ok(own_sources()),
        }
    }

    /// A hash of the files, on which the transactions depend.
    pub fn hash(&self) -> Result<u64, WorkloadError> {
        let mut hash = Xxh3::new();
        for source in self.sources()? {
            for text in [&source.path, &source.text] {
                hash.update(&(text.len() as u64).to_le_bytes());
                hash.update(text.as_bytes());
            }
        }
        Ok(hash.digest())
    }

    /// The workload on a memory of `capacity` bytes; `what` is its name in messages. Every file is compiled once, so that
    /// one that cannot be is found now.
    pub fn open(&self, what: &str, capacity: u64, seed: u64) -> Result<Compile, WorkloadError> {
        let sources: Arc<[Source]> = self.sources()?.into();
        let wrong = |reason: String| WorkloadError::DoesNotFit { what: what.to_owned(), reason };
        if sources.is_empty() {
            let folder = self.folder.as_deref().unwrap_or(Path::new("."));
            return Err(wrong(format!("there is no Rust file below {}", folder.display())));
        }
        let text: usize = sources.iter().map(|source| source.text.len()).sum();
        let bytes = (text * HEAP_PER_SOURCE).max(HEAP_BYTES_MIN).next_multiple_of(4096);
        if bytes as u64 > capacity {
            let (heap, memory) = (told_bytes(bytes as u64), told_bytes(capacity));
            return Err(wrong(format!(
                "its heap takes {heap}, but the memory has {memory}: use a larger `ftl.memory`, or fewer files"
            )));
        }
        let whole = compiled(&sources, bytes).map_err(wrong)?;
        let survey = Survey::of(whole.contents()).map_err(|error| wrong(error.to_string()))?;
        let arrivals = Arrivals::new(Pace::Closed { depth: 1 }, None, seed);
        Ok(Compile { sources, cpu: self.cpu, survey, image: Image::new(bytes), arrivals, done: 0 })
    }
}

/// The heap after some files.
fn compiled(sources: &[Source], bytes: usize) -> Result<Image, String> {
    let mut image = Image::new(bytes);
    create(&mut image).map_err(|error| error.to_string())?;
    for source in sources {
        compile(&mut image, source).map_err(|error| format!("{}: {error}", source.path))?;
    }
    Ok(image)
}

/// The compilation.
#[derive(Clone, Debug)]
pub struct Compile {
    sources: Arc<[Source]>,
    cpu: Span,
    /// What the heap holds in the end.
    survey: Survey,
    image: Image,
    arrivals: Arrivals,
    done: usize,
}

impl DurableWorkload for Compile {
    fn next(&mut self, changes: &mut Changes) -> Option<Time> {
        changes.clear();
        match self.done {
            0 => create(&mut self.image).expect("it was created when it was opened"),
            file => {
                let source = self.sources.get(file - 1)?;
                compile(&mut self.image, source).expect("it was compiled when it was opened");
            }
        }
        self.image.changes(|offset, data| changes.push(offset, data));
        changes.compute = self.cpu;
        self.done += 1;
        self.arrivals.next()
    }

    /// The heap is that of the files it names, byte for byte.
    fn check(&self, memory: &[u8]) -> Result<(), String> {
        let heap = memory.get(..self.image.contents().len()).ok_or("the memory is shorter than the heap")?;
        if heap.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        let found = Survey::of(heap).map_err(|error| error.to_string())?;
        let files = self.sources.get(..found.files as usize).ok_or("more files than expected")?;
        let wanted = compiled(files, heap.len())?;
        match (0..heap.len()).find(|&at| heap[at] != wanted.contents()[at]) {
            Some(at) => Err(format!("byte {at} of the heap of {} files differs", found.files)),
            None => Ok(()),
        }
    }
}

impl Workload for Compile {
    fn pacing(&self) -> Pacing {
        self.arrivals.pacing()
    }

    fn footprint(&self) -> Range<u64> {
        0..self.image.contents().len() as u64
    }

    fn len_hint(&self) -> Option<u64> {
        Some((self.sources.len() + 1 - self.done) as u64)
    }

    fn describe(&self) -> String {
        let cpu = exact_span(self.cpu);
        format!("compiling into a persistent heap, {cpu} of computing per file\n{}", self.survey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_between_files_is_sound_and_no_other() {
        let text = "compile cpu=1ms";
        let mut workload = CompileConfig::parse(text).unwrap().open(text, 1 << 30, 1).unwrap();
        let mut memory = vec![0; workload.footprint().end as usize];
        let mut changes = Changes::default();
        for files in 0..39 {
            workload.check(&memory).unwrap();
            workload.next(&mut changes).unwrap();
            let ends: Vec<u64> = changes.iter().map(|(offset, data)| offset + data.len() as u64).collect();
            assert!(changes.iter().skip(1).zip(ends).all(|((offset, _), end)| end < offset));
            for (index, (offset, data)) in changes.iter().enumerate() {
                let is_between = index > 0 && files % 8 == 0 && index % 50 == 1;
                if is_between {
                    workload.check(&memory).unwrap_err();
                }
                memory[offset as usize..][..data.len()].copy_from_slice(data);
            }
        }
        workload.check(&memory).unwrap();
        assert_eq!(workload.next(&mut changes), None);
        assert_eq!(Survey::of(&memory).unwrap(), workload.survey);
    }

    #[test]
    fn what_cannot_be_compiled_is_said_at_once() {
        let text = format!("compile sources={}/src/durable", env!("CARGO_MANIFEST_DIR"));
        let config = CompileConfig::parse(&text).unwrap();
        assert_eq!(config.open(&text, 1 << 30, 1).unwrap().survey.files, 4);
        assert_ne!(config.hash().unwrap(), CompileConfig::parse("compile").unwrap().hash().unwrap());
        let small = config.open("it", 1 << 16, 1).unwrap_err().to_string();
        assert!(small.starts_with("it: its heap takes 1 MiB, but the memory has 64 KiB"), "{small}");
        let data = format!("compile sources={}/tests/data", env!("CARGO_MANIFEST_DIR"));
        let none = CompileConfig::parse(&data).unwrap().open("it", 1 << 30, 1).unwrap_err().to_string();
        assert!(none.contains("there is no Rust file below"), "{none}");
    }
}
