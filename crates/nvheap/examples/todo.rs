//! The program of docs/nvheap.md: a to-do list that is kept in a heap, in the file, block device or memory window
//! `$TODO_HEAP`.

use nvlab_nvheap::{Brand, Heap, Options, PString, PVec, Persist, Result};
use std::path::{Path, PathBuf};

struct Todo; // the brand: a type for this heap, so that no pointer of another one fits
impl Brand for Todo {
    type Root = List;
}

#[derive(Persist, Default)]
#[persist(heap = Todo)]
#[repr(C)]
struct List {
    tasks: PVec<Task, Todo>,
}

#[derive(Persist)]
#[persist(heap = Todo)]
#[repr(C)]
struct Task {
    text: PString<Todo>,
    done: u32,
}

/// Adds a task, marks the first one as done, and returns all of them.
fn add(path: &Path, text: &str) -> Result<Vec<String>> {
    let heap = Heap::<Todo>::open_or_create(path, Options::default(), |_| Ok(List::default()))?;
    let list = heap.root()?;
    heap.transaction(|tx| {
        let text = PString::new(tx, text)?;
        list.write(tx)?.tasks.push(tx, Task { text, done: 0 })
    })?; // durable from here on
    heap.transaction(|tx| {
        let list = list.read(tx)?;
        list.tasks.write(tx, 0)?.done = 1;
        let mut lines = Vec::new();
        for task in list.tasks.iter(tx) {
            let task = task?;
            lines.push(format!("[{}] {}", task.done, task.text.get(tx)?));
        }
        Ok(lines)
    })
}

fn main() -> Result<()> {
    let new = std::env::temp_dir().join(format!("todo-{}", std::process::id()));
    let path = std::env::var_os("TODO_HEAP").map_or(new, PathBuf::from);
    for text in ["water the plants", "feed the cat"] {
        println!("{}", add(&path, text)?.join("\n"));
    }
    Ok(())
}
