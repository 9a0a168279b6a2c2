//! Checks that a heap is consistent: every block, pointer, count and value; finds objects that keep each other alive.

use super::collections;
use super::cycles;
use super::schema::{Form, Pointing, Type};
use super::sums;
use super::survey::{Edge, Problems, Survey, View};
use super::valid::Part;
use crate::error::{Error, Result};
use crate::pointer::{offset, tag};
use crate::tx::value_at;
use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU64;

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Check {
    /// Objects and array blocks in use.
    pub blocks: u64,
    /// Bytes of their blocks.
    pub bytes: u64,
    /// Pages of 64 KiB without blocks.
    pub free_pages: u64,
    /// Whether the heap has checksums; all were compared.
    pub checksums: bool,
    /// Blocks not reachable from the root: cycles, objects that the program has forgotten, and what only these point
    /// to.
    pub unreachable: u64,
    /// Bytes of those blocks.
    pub unreachable_bytes: u64,
    /// Cycles of objects that keep each other alive.
    pub cycle_count: u64,
    /// The largest cycles, at most 100, unreachable ones first.
    pub cycles: Vec<Cycle>,
    /// The problems found, at most 100. None in a heap that only this library has written to.
    pub problems: Vec<Error>,
}

/// Objects that keep each other alive: each can be reached from each other.
#[derive(Clone, Debug)]
pub struct Cycle {
    /// Whether the root reaches it. If not, no program can use it.
    pub is_reachable: bool,
    /// Objects and array blocks.
    pub blocks: u64,
    /// Bytes of their blocks.
    pub bytes: u64,
    /// Their types, with the number of each.
    pub types: Vec<(String, u64)>,
    /// Offset of the first object, in bytes from the beginning of the file.
    pub at: u64,
}

/// What was found out about a block.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    strong: u64,
    weak: u64,
    is_seen: bool,
    is_listed: bool,
    /// Whether a list has it as an element.
    is_element: bool,
}

/// A check, and what it was made of.
#[derive(Debug)]
pub(crate) struct Checked {
    pub survey: Survey,
    /// Blocks that neither the root nor a list of those to be destroyed leads to, in the order of the file.
    pub unreachable: Vec<usize>,
    /// By the index of the block: the strong and weak references that were found. Where more are counted, a program has forgotten
    /// pointers.
    pub references: Vec<(u64, u64)>,
    pub found: Check,
}

pub(crate) struct Checker<'v> {
    view: View<'v>,
    survey: Survey,
    marks: Vec<Mark>,
    problems: Problems,
    /// Blocks whose pointers are to be followed.
    next: Vec<usize>,
}

impl<'v> Checker<'v> {
    /// Checks a heap that does not change during the check. Objects `kept` by handles count as reachable.
    pub fn run(view: View<'v>, root: u64, kept: &[u64]) -> Result<Checked> {
        let mut problems = Problems::default();
        sums::compare(view, &mut problems)?;
        let survey = Survey::new(view, &mut problems)?;
        let marks = vec![Mark::default(); survey.blocks.len()];
        let mut checker = Checker { view, survey, marks, problems, next: Vec::new() };
        checker.locks()?;
        checker.root(root);
        checker.follow(true)?;
        for &at in kept {
            checker.survey.find(at).into_iter().for_each(|index| checker.see(index));
        }
        checker.follow(true)?;
        checker.lists()?;
        checker.follow(false)?;
        let mut unreachable = checker.unreachable()?;
        checker.counts(&mut unreachable)?;
        let cycles = cycles::groups(&checker.survey, view)?;
        let Checker { survey, marks, problems, .. } = checker;
        let references = marks.iter().map(|mark| (mark.strong, mark.weak)).collect();
        let mut found = Check {
            blocks: survey.blocks.len() as u64,
            bytes: survey.blocks.iter().map(|block| block.bytes).sum(),
            free_pages: survey.free_pages,
            checksums: view.memory.sums().is_some(),
            unreachable: unreachable.len() as u64,
            unreachable_bytes: unreachable.iter().map(|&index| survey.blocks[index].bytes).sum(),
            cycle_count: cycles.len() as u64,
            cycles: Vec::new(),
            problems: problems.0,
        };
        found.cycles = report(view, &survey, &unreachable, cycles);
        Ok(Checked { survey, unreachable, references, found })
    }

    /// Looks at the locks of the elements of large arrays.
    fn locks(&mut self) -> Result<()> {
        for block in &self.survey.blocks {
            let Some(entry) = self.view.schema.get(block.meta.tag()).filter(|entry| entry.is_array) else {
                continue;
            };
            if let Some(shape) = self.view.array(block.at, entry)? {
                shape.locks(block.at).step_by(8).try_for_each(|at| self.view.lock(at, &mut self.problems))?;
            }
        }
        Ok(())
    }

    fn root(&mut self, at: u64) {
        match self.survey.find(at) {
            Some(index) if self.survey.blocks[index].meta.tag() == 1 => {
                self.marks[index].strong += 1;
                self.see(index);
            }
            _ => self.problems.add(at, "the root is not an object of its type"),
        }
    }

    fn see(&mut self, index: usize) {
        if !std::mem::replace(&mut self.marks[index].is_seen, true) {
            self.next.push(index);
        }
    }

    /// Follows the pointers of blocks, and of those they lead to. Those of a block that is being destroyed may lead back to
    /// what has gone.
    fn follow(&mut self, is_whole: bool) -> Result<()> {
        while let Some(index) = self.next.pop() {
            let block = self.survey.blocks[index];
            let Some(entry) = self.view.schema.get(block.meta.tag()) else { continue };
            if entry.is_array && block.meta.strong() == 0 {
                // On its way out: so many elements are left.
                let live = self.view.live(block.at)?;
                self.set_len(index, entry, live)?;
            }
            for edge in 0..self.survey.edges(self.view, index) {
                match self.survey.edge(self.view, index, edge)? {
                    Some(edge) => self.point(edge, is_whole)?,
                    None => self.none(index, edge)?,
                }
            }
            if entry.form.is_selective() {
                self.values(index, entry)?;
            }
        }
        Ok(())
    }

    /// The elements of an array block, as its owner says.
    fn set_len(&mut self, index: usize, entry: &Type, len: u64) -> Result<()> {
        let at = self.survey.blocks[index].at;
        match self.view.array(at, entry)?.filter(|shape| len <= shape.capacity) {
            Some(_) => self.survey.blocks[index].len = len,
            None => self.problems.add(at, format!("{len} elements in a smaller array")),
        }
        Ok(())
    }

    /// An array without a block is empty.
    fn none(&mut self, index: usize, edge: u64) -> Result<()> {
        let block = self.survey.blocks[index];
        let Some(entry) = self.view.schema.get(block.meta.tag()) else { return Ok(()) };
        let kind = entry.pointers[edge as usize % entry.pointers.len()];
        if kind.pointing == Pointing::Array && !entry.is_array {
            let home = value_at(block.at) + kind.offset;
            if self.view.vec(home)? != [0, 0] {
                self.problems.add(home, "an array without a block has a length");
            }
        }
        Ok(())
    }

    fn point(&mut self, edge: Edge, is_whole: bool) -> Result<()> {
        let Edge { home, kind, at, tag } = edge;
        if kind.pointing == Pointing::Back {
            if is_whole && self.survey.find(at).is_none_or(|to| self.survey.blocks[to].meta.tag() != tag) {
                self.problems.add(home, "a back pointer points to no block of its type");
            }
            return Ok(());
        }
        if !kind.to.contains(&tag) || tag == 0 {
            self.problems.add(home, format!("a pointer to type {tag} where {} belongs", kind.to[0]));
            return Ok(());
        }
        let to = self.survey.find(at).filter(|&to| self.survey.blocks[to].meta.tag() == tag);
        let Some(to) = to else {
            self.problems.add(home, "a pointer points to no block of its type");
            return Ok(());
        };
        if !edge.is_owner() {
            self.marks[to].weak += 1;
            return Ok(());
        }
        self.marks[to].strong += 1;
        if edge.is_array() {
            let [len, capacity] = self.view.vec(home)?;
            let entry = self.view.schema.get(tag).expect("found above");
            let shape = self.view.array(at, entry)?;
            if shape.is_none_or(|shape| shape.capacity != capacity) {
                self.problems.add(home, "an array and its block disagree about its capacity");
            } else if !self.marks[to].is_seen {
                self.set_len(to, entry, len)?;
            }
        }
        self.see(to);
        if kind.pointing == Pointing::Tree { self.tree(to) } else { Ok(()) }
    }

    fn bytes(&self, at: u64, entry: &Type) -> Result<Vec<u8>> {
        let words = self.view.memory.load_words(value_at(at), entry.bytes.div_ceil(8) as usize)?;
        Ok(words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    /// Checks that all leaves of a sorted map are as far down as it says. Pointers that lead to no node are found where pointers
    /// are followed.
    fn tree(&mut self, anchor: usize) -> Result<()> {
        let block = self.survey.blocks[anchor];
        let Some(entry) = self.view.schema.get(block.meta.tag()) else { return Ok(()) };
        let (top, height) = collections::top(&entry.form, &self.bytes(block.at, entry)?, block.at)?;
        let mut left: Vec<_> = top.into_iter().map(|top| (top, height)).collect();
        let mut most = self.survey.blocks.len();
        while let Some((node, height)) = left.pop() {
            let found = self.survey.find(node.at).map(|index| self.survey.blocks[index].meta.tag());
            let entry = self.view.schema.get(node.number).filter(|_| found == Some(node.number));
            let Some(entry) = entry else { continue };
            // Most nodes are leaves, and nothing that they hold is needed.
            let is_inner = collections::is_inner(&entry.form);
            let bytes = if is_inner { self.bytes(node.at, entry)? } else { Vec::new() };
            match collections::children(&entry.form, &bytes) {
                None if height == 0 => {}
                Some(children) if height > 0 && most > 0 => {
                    left.extend(children.flatten().map(|child| (child, height - 1)));
                }
                _ => {
                    self.problems.add(block.at, "the height of a map is not that of its nodes");
                    break;
                }
            }
            most = most.saturating_sub(1);
        }
        Ok(())
    }

    /// Whether bytes are values of their type.
    fn values(&mut self, index: usize, entry: &Type) -> Result<()> {
        let (block, memory) = (self.survey.blocks[index], self.view.memory);
        let words = entry.bytes.div_ceil(8) as usize;
        let shape = if entry.is_array { self.view.array(block.at, entry)? } else { None };
        let mut buffer = vec![0; words];
        let (mut bytes, mut parts) = (Vec::with_capacity(words * 8), Vec::new());
        for element in 0..if entry.is_array { block.len } else { 1 } {
            let at = shape.map_or(value_at(block.at), |shape| shape.element(block.at, element).1);
            memory.copy_words(at, &mut buffer)?;
            bytes.clear();
            bytes.extend(buffer.iter().flat_map(|word| word.to_le_bytes()));
            if let Err(why) = entry.form.check(&bytes, at, &mut |part, at| parts.push((part, at))) {
                self.problems.add(at, format!("{}: {why}", entry.name));
            }
            if collections::children(&entry.form, &bytes).is_some_and(|mut all| all.any(|one| one.is_none()))
            {
                self.problems.add(at, "an inner node of a map lacks a child");
            }
            // One whose value has been taken out is on its way out.
            if block.meta.strong() > 0 && entry.form.lacks_value(&bytes) {
                self.problems.add(at, "a node of a list lacks its value");
            }
            for (part, at) in parts.drain(..) {
                match part {
                    Part::Text => {
                        if let Err(error) = super::text::read(self.view, at, u64::MAX) {
                            self.problems.add(at, error.to_string());
                        }
                    }
                    // Of one that is being destroyed elements have gone.
                    Part::List(_) if block.meta.strong() == 0 => {}
                    Part::List(form) => self.list(form, at)?,
                }
            }
        }
        Ok(())
    }

    /// Checks that a list has as many elements as it says, and that each points back to the one before. Pointers that
    /// lead to no element are found where pointers are followed.
    fn list(&mut self, form: &Form, home: u64) -> Result<()> {
        let word = |at: u64| self.view.memory.load_words(at, 1).map(|words| NonZeroU64::new(words[0]));
        let field = |form: &Form, name| form.field(name).map_or(0, |field| field.offset);
        let len = word(home + field(form, "len"))?.map_or(0, NonZeroU64::get);
        let (mut next, mut last, mut count) = (word(home + field(form, "first"))?, None, 0);
        while let Some(element) = next {
            let node = self.view.schema.get(tag(element)).map(|entry| &entry.form);
            let (Some(index), Some(node)) = (self.survey.find(offset(element)), node) else { break };
            if self.survey.blocks[index].meta.tag() != tag(element) || node.field("previous").is_none() {
                break;
            }
            let value = value_at(offset(element));
            if word(value + field(node, "previous"))? != last {
                self.problems.add(value, "an element of a list does not lead back to the one before");
            }
            if std::mem::replace(&mut self.marks[index].is_element, true) {
                self.problems.add(value, "an element is in lists twice");
                break;
            }
            (next, last, count) = (word(value + field(node, "next"))?, next, count + 1);
        }
        if count != len {
            self.problems.add(home, format!("a list of {count} elements has length {len}"));
        }
        if word(home + field(form, "last"))? != last {
            self.problems.add(home, "the end of a list is not its last element");
        }
        Ok(())
    }

    /// The objects that wait for their destruction: none points to them, and what they point to is still theirs.
    fn lists(&mut self) -> Result<()> {
        for (log, list) in (0..self.view.layout.logs as usize).flat_map(|log| [(log, 0), (log, 1)]) {
            let mut at = self.view.list(log, list)?;
            while at != 0 {
                let Some(index) = self.survey.find(at).filter(|&index| !self.marks[index].is_listed) else {
                    self.problems.add(at, "a list of objects to be destroyed leads here");
                    break;
                };
                self.marks[index].is_listed = true;
                self.see(index);
                at = self.view.link(at)?;
            }
        }
        Ok(())
    }

    /// Unreachable objects that point to unreachable objects: their references count.
    fn unreachable(&mut self) -> Result<Vec<usize>> {
        let is_left =
            |&index: &usize| !self.marks[index].is_seen && self.survey.blocks[index].meta.strong() > 0;
        let left: Vec<usize> = (0..self.marks.len()).filter(is_left).collect();
        // Arrays are followed from what owns them, which knows their lengths.
        let is_array = |&index: &usize| {
            self.view.schema.get(self.survey.blocks[index].meta.tag()).is_some_and(|entry| entry.is_array)
        };
        let (arrays, objects): (Vec<usize>, Vec<usize>) = left.iter().partition(|index| is_array(index));
        for index in objects.into_iter().chain(arrays) {
            self.see(index);
            self.follow(true)?;
        }
        Ok(left)
    }

    /// Fewer references counted than exist is damage: an object would be destroyed too early. More are a leak: a
    /// program has forgotten pointers.
    fn counts(&mut self, unreachable: &mut Vec<usize>) -> Result<()> {
        for (index, (block, mark)) in self.survey.blocks.iter().zip(&self.marks).enumerate() {
            let (strong, weak) = (block.meta.strong(), block.meta.weak());
            let link = self.view.link(block.at)?;
            if strong < mark.strong || weak < mark.weak {
                let why = format!(
                    "{strong} and {weak} weak references counted, {} and {} found",
                    mark.strong, mark.weak
                );
                self.problems.add(block.at, why);
            } else if strong == 0 && weak == 0 && !mark.is_listed {
                self.problems.add(block.at, "an unreferenced block");
            } else if !mark.is_listed && link != if strong == 0 { block.at } else { 0 } {
                self.problems.add(block.at, "an object is linked to a list that it is not in");
            } else if strong == 0 && mark.weak == 0 && !mark.is_listed {
                // Destroyed, and kept for weak pointers that were forgotten.
                unreachable.push(index);
            }
        }
        unreachable.sort_unstable();
        Ok(())
    }
}

/// Describes the cycles.
fn report(view: View<'_>, survey: &Survey, unreachable: &[usize], groups: Vec<Vec<u32>>) -> Vec<Cycle> {
    let lost: HashSet<usize> = unreachable.iter().copied().collect();
    let bytes =
        |group: &Vec<u32>| group.iter().map(|&index| survey.blocks[index as usize].bytes).sum::<u64>();
    let mut groups: Vec<_> = groups
        .into_iter()
        .map(|group| (!lost.contains(&(group[0] as usize)), std::cmp::Reverse(bytes(&group)), group))
        .collect();
    groups.sort();
    groups.truncate(100);
    let cycle = |(is_reachable, bytes, group): (bool, std::cmp::Reverse<u64>, Vec<u32>)| {
        let mut types = BTreeMap::new();
        for &index in &group {
            let entry = view.schema.get(survey.blocks[index as usize].meta.tag());
            *types.entry(entry.map_or("?".into(), |entry| entry.name.clone())).or_insert(0) += 1;
        }
        let first = group.iter().min().expect("no group is empty");
        Cycle {
            is_reachable,
            blocks: group.len() as u64,
            bytes: bytes.0,
            types: types.into_iter().collect(),
            at: survey.blocks[*first as usize].at,
        }
    };
    groups.into_iter().map(cycle).collect()
}
