//! A compiler front end whose symbols, types and code live in a persistent heap (system 001, slide 30).
//!
//! It parses Rust source files, resolves the names of items and variables, lowers function bodies to three-address code
//! and links all of it into the heap, one transaction for each file. It is a workload, not a tool: enough of a compiler
//! that the sizes and places of its changes are those of a real one.
//!
//! | part | done | not done |
//! |---|---|---|
//! | names | modules, imports, globs, items, generics, variables, captures | visibility |
//! | types | every type that is written; of literals, calls, fields and casts, the types known without inference | inference, generic arguments, traits |
//! | methods | where the receiver's type is known; others by name alone | trait selection, auto-dereference beyond references |
//! | bodies | all of the expressions and patterns of the language but async, raw addresses and macros whose arguments are no expressions | expansion of macros, drops, borrow checks |
//!
//! What is not done becomes an `unsupported` instruction, which is counted. A name that is used before its file is
//! compiled, or never, is an external symbol; its declaration changes that symbol in place.
//!
//! The snapshot of this workspace's own sources ([`own_sources`]: 38 files, 258 KB) becomes 2105 symbols, 523 types and
//! 19,733 instructions in 742 KB; 22 constructs are not supported. A transaction changes 18.6 KB in 201 runs of bytes on
//! average, after a first one of 33.9 KB that makes the index. The paper's compiler commits 15 KB a file.
//!
//! A compiled heap depends on the sources and their order alone; [`Survey`] describes it wherever its objects lie.

mod code;
mod control;
mod expressions;
mod front;
mod image;
mod items;
mod objects;
mod sources;
mod survey;
mod types;

pub use image::Image;
pub use sources::{Source, own_sources, sources_in};
pub use survey::Survey;

use front::Front;
use nvlab_rvm::heap::{self, Words};
use objects::{Kind, Objects, Root};

/// Why a file could not be compiled.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CompileError {
    /// It is not Rust.
    #[error("{path}:{line}:{column}: {reason}")]
    Syntax {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What the parser expected.
        reason: String,
    },
    /// A function has more registers, constants or instructions than an operand can count.
    #[error("{path}: a function has more than 65536 registers, constants or instructions")]
    TooLarge {
        /// The file.
        path: String,
    },
    /// The heap is full or damaged, or the memory refused a change.
    #[error(transparent)]
    Heap(#[from] heap::Error),
}

/// Makes all of `words` an empty heap for [`compile`]. The first transaction.
pub fn create(words: impl Words) -> heap::Result<()> {
    Objects::create(words).map(|_| ())
}

/// Compiles a file into the heap. After an error the transaction must be aborted.
pub fn compile(words: impl Words, source: &Source) -> Result<(), CompileError> {
    let file = syn::parse_file(&source.text).map_err(|error| {
        let start = error.span().start();
        let (line, column) = (start.line, start.column + 1);
        CompileError::Syntax { path: source.path.clone(), line, column, reason: error.to_string() }
    })?;
    let mut front = Front::new(Objects::open(words)?);
    enter(&mut front, &source.path)?;
    let fits = front.items(&file.items)?;
    let path = front.objects.text(&source.path)?;
    let Front { functions, instructions, unsupported, .. } = front;
    front.objects.add_file(&[path, source.text.len() as u64, functions, instructions, unsupported])?;
    if fits { Ok(()) } else { Err(CompileError::TooLarge { path: source.path.clone() }) }
}

/// Enters the module that a file is, from the path: `crates/rvm/src/log/file.rs` is the module `rvm::log::file`.
fn enter<W: Words>(front: &mut Front<W>, path: &str) -> heap::Result<()> {
    let mut at = front.objects.root(Root::Crates);
    let segments: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    for (index, segment) in segments.iter().enumerate() {
        let is_last = index + 1 == segments.len();
        if matches!(*segment, "crates" | "src") || is_last && matches!(*segment, "lib" | "mod" | "main") {
            continue;
        }
        let name = front.objects.text(segment)?;
        at = front.objects.declare(at, name, Kind::Module, 0)?;
        front.scopes.push(at);
    }
    if front.scopes.is_empty() {
        let name = front.objects.text("main")?;
        at = front.objects.declare(at, name, Kind::Module, 0)?;
        front.scopes.push(at);
    }
    Ok(())
}
