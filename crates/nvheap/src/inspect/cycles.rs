//! Groups of objects that keep each other alive: strongly connected components (Tarjan, 1972), without recursion.

use super::survey::{Survey, View};
use crate::error::Result;
use crate::tx::Cut;

const UNSEEN: u32 = u32::MAX;

struct Finder {
    /// The order in which blocks were found; `UNSEEN` before.
    number: Vec<u32>,
    /// The least number that a block's group can reach.
    low: Vec<u32>,
    is_open: Vec<bool>,
    open: Vec<u32>,
    found: Vec<Vec<u32>>,
}

/// The groups of more than one block, and blocks that point to themselves.
pub(crate) fn groups(survey: &Survey, view: View<'_>) -> Result<Vec<Vec<u32>>> {
    let blocks = survey.blocks.len();
    let mut finder = Finder {
        number: vec![UNSEEN; blocks],
        low: vec![UNSEEN; blocks],
        is_open: vec![false; blocks],
        open: Vec::new(),
        found: Vec::new(),
    };
    let mut next = 0;
    for block in 0..blocks {
        if finder.number[block] == UNSEEN && survey.blocks[block].meta.strong() > 0 {
            finder.search(survey, view, block, &mut next)?;
        }
    }
    Ok(finder.found)
}

impl Finder {
    fn enter(&mut self, block: usize, next: &mut u32) {
        (self.number[block], self.low[block]) = (*next, *next);
        *next += 1;
        self.open.push(block as u32);
        self.is_open[block] = true;
    }

    fn search(&mut self, survey: &Survey, view: View<'_>, first: usize, next: &mut u32) -> Result<()> {
        // Blocks on the way, and the pointer of each that is followed.
        let mut path = vec![(first, 0)];
        self.enter(first, next);
        while let Some(&(block, edge)) = path.last() {
            if edge == survey.edges(view, block) {
                path.pop();
                let low = self.low[block];
                if let Some(&(before, _)) = path.last() {
                    self.low[before] = self.low[before].min(low);
                }
                if low == self.number[block] {
                    self.close(survey, view, block)?;
                }
                continue;
            }
            path.last_mut().expect("not empty").1 += 1;
            let target = survey.edge(view, block, edge)?.filter(|edge| edge.is_owner());
            let Some(target) = target.and_then(|edge| survey.find(edge.at)) else { continue };
            if self.number[target] == UNSEEN {
                self.enter(target, next);
                path.push((target, 0));
            } else if self.is_open[target] {
                self.low[block] = self.low[block].min(self.number[target]);
            }
        }
        Ok(())
    }

    /// The group that was entered with this block is complete.
    fn close(&mut self, survey: &Survey, view: View<'_>, block: usize) -> Result<()> {
        let start = self.open.iter().rposition(|&open| open as usize == block).expect("it was entered");
        let group = self.open.split_off(start);
        group.iter().for_each(|&block| self.is_open[block as usize] = false);
        let is_circle = group.len() > 1 || {
            let at = survey.blocks[block].at;
            let mut is_own = false;
            for edge in 0..survey.edges(view, block) {
                is_own |=
                    survey.edge(view, block, edge)?.is_some_and(|edge| edge.at == at && edge.is_owner());
            }
            is_own
        };
        if is_circle {
            self.found.push(group);
        }
        Ok(())
    }
}

/// Pointers of unreachable circles that may be none. Without them no circle is left: of the pointers on a way from an object back
/// to it, one can be none, or nobody could have made the first of these objects.
pub(crate) fn cuts(survey: &Survey, view: View<'_>, unreachable: &[usize]) -> Result<Vec<Cut>> {
    let mut group_of = vec![0; survey.blocks.len()];
    for (group, blocks) in groups(survey, view)?.iter().enumerate() {
        blocks.iter().for_each(|&block| group_of[block as usize] = group + 1);
    }
    let mut found = Vec::new();
    for &index in unreachable.iter().filter(|&&index| group_of[index] > 0) {
        let block = survey.blocks[index];
        // An array goes with the pointer of its owner.
        let Some(entry) = view.schema.get(block.meta.tag()).filter(|entry| !entry.is_array) else { continue };
        for edge in 0..survey.edges(view, index) {
            let edge =
                survey.edge(view, index, edge)?.filter(|edge| edge.is_owner() && edge.kind.is_optional);
            let Some(edge) = edge else { continue };
            if survey.find(edge.at).is_some_and(|to| group_of[to] == group_of[index]) {
                found.push(Cut {
                    at: block.at,
                    tag: block.meta.tag(),
                    words: entry.bytes.div_ceil(8) as usize,
                    word: (edge.kind.offset / 8) as usize,
                    is_array: edge.is_array(),
                });
            }
        }
    }
    Ok(found)
}
