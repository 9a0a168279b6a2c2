//! What a transaction reads when it is tried again after a conflict.

/// Source of the reads of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The current contents, none of which may be changed by others until the commit.
    Current,
    /// The contents when the try began.
    Snapshot,
    /// The current contents, after a snapshot was of no use: the transaction changes something.
    Writing,
}

impl Way {
    /// Number of reads that make a try a long one.
    const LONG: usize = 256;
    /// Tries of a short transaction before it reads from a snapshot.
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
