//! Six degrees: searches for a path of at most six edges between two random nodes of a random graph, while edges are added and
//! removed (Coburn et al., NV-heaps, ASPLOS 2011; the paper leaves the details open, so here they are).
//!
//! * A power of two of nodes. A node is a record of 64 B: how many neighbours it has, and their numbers.
//! * Edge `(a, k)`, for k below 5, connects node a with `a * FACTORS[k] + STEPS[k]` (modulo the nodes): a permutation, so no
//!   node has more than ten edges. At the start a random half of them is there, five a node.
//! * Half of the operations, at random, are searches, half are changes. A change takes a random edge, removes it if it is
//!   there and adds it if it is not: two nodes in one transaction.
//! * A search reads the nodes within three edges of one end, then those within three edges of the other, until a node is among
//!   both. It sees the graph as of one moment.

use super::{Driver, Part, Result, Several, scramble};
use nvlab_units::Rng;

const EDGES: u64 = 5;
/// Odd, and one more than a multiple of four; the steps are odd: then no node is connected with itself (Hull and Dobell, 1962).
const FACTORS: [u32; EDGES as usize] = [0x9e375, 0x85eb1, 0xc2b2d, 0x27d4d, 0x16565];
const STEPS: [u32; EDGES as usize] = [0x7f4b, 0xca6b, 0xae35, 0x2c1b, 0x9d4f];
const NEIGHBOURS_MAX: usize = 15;

/// A node's record: the number of neighbours, and theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node(pub [u32; 1 + NEIGHBOURS_MAX]);

impl Node {
    fn neighbours(&self) -> &[u32] {
        &self.0[1..1 + (self.0[0] as usize).min(NEIGHBOURS_MAX)]
    }

    /// Removes a neighbour, or adds it if it is not one.
    pub fn toggle(&mut self, neighbour: u32) {
        let count = self.0[0] as usize;
        match self.neighbours().iter().position(|&other| other == neighbour) {
            Some(index) => {
                self.0[1 + index] = self.0[count];
                self.0[0] -= 1;
            }
            None => {
                self.0[1 + count] = neighbour;
                self.0[0] += 1;
            }
        }
    }
}

/// A graph of numbered nodes that can be searched and changed by several threads.
pub trait Graph: Sync {
    /// Fills an empty one with all nodes.
    fn load(&self, nodes: &[Node]) -> Result<()>;
    /// Removes the edge between two nodes, or adds it: [`Node::toggle`] for both.
    fn toggle(&self, first: u32, second: u32) -> Result<()>;
    /// Calls [`Search::run`] with a function that reads nodes as they are at one moment.
    fn search(&self, search: &mut Search) -> Result<bool>;
    /// [`Driver::together`].
    fn together(&self, operations: Several<'_>) -> Result<()> {
        operations()
    }
    /// Calls `each` with the number and contents of every node.
    fn each(&self, each: &mut dyn FnMut(u32, &Node) -> Result<()>) -> Result<()>;
    /// Closes the store; an error if it cannot be written.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A search, and the memory that all searches of a thread share.
#[derive(Debug)]
pub struct Search {
    from: u32,
    to: u32,
    /// The number of the last search that came by a node from its first end.
    marks: Vec<u32>,
    /// As `marks`, for searches from the second end.
    marks_back: Vec<u32>,
    number: u32,
    nodes: Vec<u32>,
}

impl Search {
    fn new(nodes: usize) -> Search {
        let marks = || vec![0; nodes];
        Search { from: 0, to: 0, marks: marks(), marks_back: marks(), number: 0, nodes: Vec::new() }
    }

    fn begin(&mut self, from: u32, to: u32) {
        (self.from, self.to) = (from, to);
        // What a retried search has marked must not count.
        self.number += 1;
    }

    /// Whether there is a path of at most six edges. May be called again, if the reading failed.
    pub fn run(&mut self, mut read: impl FnMut(u32) -> Result<Node>) -> Result<bool> {
        self.number += 1;
        let Search { from, to, marks, marks_back, number, nodes } = self;
        reach(*from, *number, marks, nodes, &mut read, |_| false)?;
        reach(*to, *number, marks_back, nodes, &mut read, |node| marks[node as usize] == *number)
    }
}

/// Marks all nodes within three edges of one, until one is found.
fn reach(
    start: u32,
    number: u32,
    marks: &mut [u32],
    nodes: &mut Vec<u32>,
    read: &mut impl FnMut(u32) -> Result<Node>,
    is_found: impl Fn(u32) -> bool,
) -> Result<bool> {
    nodes.clear();
    nodes.push(start);
    marks[start as usize] = number;
    if is_found(start) {
        return Ok(true);
    }
    let mut first = 0;
    for _ in 0..3 {
        let end = nodes.len();
        for index in first..end {
            for &neighbour in read(nodes[index])?.neighbours() {
                let mark = marks.get_mut(neighbour as usize).ok_or("a neighbour that is not a node")?;
                if *mark != number {
                    *mark = number;
                    nodes.push(neighbour);
                    if is_found(neighbour) {
                        return Ok(true);
                    }
                }
            }
        }
        first = end;
    }
    Ok(false)
}

/// What a thread does next.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// Whether a path of at most six edges leads from the first node to the second.
    Search(u32, u32),
    /// Removes the edge between the two nodes, or adds it.
    Toggle(u32, u32),
}

/// A thread's random numbers and the memory of its searches.
#[derive(Debug)]
pub struct Worker {
    rng: Rng,
    part: Part,
    search: Search,
    /// Paths found.
    found: u64,
}

/// The ends of edge `number` of a graph of `nodes` nodes.
fn ends(number: u64, nodes: u64) -> (u32, u32) {
    let (node, kind) = ((number / EDGES) as u32, (number % EDGES) as usize);
    (node, node.wrapping_mul(FACTORS[kind]).wrapping_add(STEPS[kind]) % nodes as u32)
}

/// Six degrees of separation, with the graph that stores must hold.
#[derive(Debug)]
pub struct GraphDriver {
    nodes: Vec<Node>,
}

impl GraphDriver {
    /// For a graph of `nodes` nodes: a power of two, at most 2^24.
    pub fn new(nodes: u64) -> GraphDriver {
        assert!(nodes.is_power_of_two() && nodes <= 1 << 24, "{nodes} nodes");
        let mut all = vec![Node::default(); nodes as usize];
        for number in (0..nodes * EDGES).filter(|&number| scramble(number) & 4 == 0) {
            toggle(&mut all, ends(number, nodes));
        }
        GraphDriver { nodes: all }
    }
}

fn toggle(nodes: &mut [Node], (first, second): (u32, u32)) {
    nodes[first as usize].toggle(second);
    nodes[second as usize].toggle(first);
}

impl Driver for GraphDriver {
    type Store = dyn Graph;
    type Worker = Worker;
    type Operation = Operation;

    fn load(&self, store: &dyn Graph) -> Result<()> {
        store.load(&self.nodes)
    }

    fn worker(&self, part: Part) -> Worker {
        Worker { rng: part.rng(), part, search: Search::new(self.nodes.len()), found: 0 }
    }

    fn draw(worker: &mut Worker) -> Operation {
        let nodes = worker.search.marks.len() as u64;
        let word = worker.rng.bits();
        if word & 1 == 0 {
            let node = |shift| (word >> shift) as u32 % nodes as u32;
            return Operation::Search(node(8), node(32));
        }
        // Two edges may connect the same nodes: then they are one edge, of one thread.
        loop {
            let (first, second) = ends(worker.rng.below(nodes * EDGES), nodes);
            let (low, high) = (first.min(second), first.max(second));
            let mark = scramble(u64::from(low) << 32 | u64::from(high));
            if mark % worker.part.threads == worker.part.thread {
                return Operation::Toggle(first, second);
            }
        }
    }

    fn apply(store: &dyn Graph, worker: &mut Worker, operation: &Operation) -> Result<()> {
        match *operation {
            Operation::Toggle(first, second) => store.toggle(first, second),
            Operation::Search(from, to) => {
                worker.search.begin(from, to);
                worker.found += u64::from(store.search(&mut worker.search)?);
                Ok(())
            }
        }
    }

    fn together(store: &dyn Graph, operations: Several<'_>) -> Result<()> {
        store.together(operations)
    }

    fn replay(&mut self, part: Part, count: u64, done: &Worker) -> Result<()> {
        let mut worker = self.worker(part);
        for _ in 0..count {
            match Self::draw(&mut worker) {
                Operation::Toggle(first, second) => toggle(&mut self.nodes, (first, second)),
                Operation::Search(from, to) if part.threads == 1 => {
                    worker.search.begin(from, to);
                    let nodes = &self.nodes;
                    worker.found += u64::from(worker.search.run(|node| Ok(nodes[node as usize]))?);
                }
                Operation::Search(..) => {}
            }
        }
        // What two threads find depends on how they take turns.
        if part.threads == 1 && done.found != worker.found {
            return Err(format!("{} paths found instead of {}", done.found, worker.found).into());
        }
        Ok(())
    }

    fn verify(&mut self, store: &dyn Graph) -> Result<()> {
        let sorted = |node: &Node| {
            let mut neighbours = node.neighbours().to_vec();
            neighbours.sort_unstable();
            neighbours
        };
        let (nodes, mut count) = (&self.nodes, 0);
        store.each(&mut |number, node| {
            count += 1;
            let wanted = nodes.get(number as usize).ok_or("a node too many")?;
            if sorted(node) != sorted(wanted) {
                return Err(format!("node {number} is {node:?} instead of {wanted:?}").into());
            }
            Ok(())
        })?;
        if count == nodes.len() { Ok(()) } else { Err(format!("{count} of {} nodes", nodes.len()).into()) }
    }

    fn close(store: Box<dyn Graph>) -> Result<()> {
        store.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_edges_are_found_and_seven_are_not() {
        let mut search = Search::new(10);
        let mut nodes = vec![Node::default(); 10];
        (0..9).for_each(|node| toggle(&mut nodes, (node, node + 1)));
        for (to, is_near) in [(0, true), (1, true), (5, true), (6, true), (7, false), (9, false)] {
            search.begin(0, to);
            assert_eq!(search.run(|node| Ok(nodes[node as usize])).unwrap(), is_near, "0 to {to}");
        }
    }
}
