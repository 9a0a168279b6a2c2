//! What a transaction that others are in the way of reads when it is tried again.

/// What a try of a transaction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// What is there, of which nobody may change anything meanwhile.
    Current,
    /// What was there when the try began.
    Snapshot,
    /// As the first, after a snapshot was of no use: the transaction changes something.
    Writing,
}

impl Way {
    /// Reads of a try that make it a long one.
    const LONG: usize = 256;
    /// How often a short one is tried.
    const TRIES: u32 = 4;

    /// After a conflict, in a try that read so much, as far as is known without changing anything.
    #[cold]
    pub fn next(self, tries: u32, reads_lost: Option<usize>) -> Way {
        match (self, reads_lost) {
            (Way::Snapshot, None) => Way::Writing,
            (Way::Current, Some(reads)) if reads >= Way::LONG || tries >= Way::TRIES => Way::Snapshot,
            (way, _) => way,
        }
    }
}
