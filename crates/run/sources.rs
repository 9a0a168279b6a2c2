//! A digest of folders, for `build.rs`: of the names and contents of all their files, whatever the order in which the system lists
//! them, and wherever they lie.

use std::path::Path;
use std::{fs, io};

/// FNV-1a (Fowler, Noll and Vo), 64 bits: <http://www.isthe.com/chongo/tech/comp/fnv/>.
struct Digest(u64);

impl Digest {
    /// A text of known length: where it ends is part of the digest.
    fn take(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ *byte as u64).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn folder(&mut self, folder: &Path, name: &str) -> io::Result<()> {
        let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        let mut entries: Vec<_> =
            entries.into_iter().map(|entry| (entry.file_name(), entry.path())).collect();
        entries.sort();
        for (file, path) in entries {
            let name = format!("{name}/{}", file.to_string_lossy());
            if path.is_dir() {
                self.folder(&path, &name)?;
            } else {
                self.take(name.as_bytes());
                self.take(&fs::read(&path)?);
            }
        }
        Ok(())
    }
}

/// The digest of `folders` below `root`; one that is not there counts as empty.
pub fn digest(root: &Path, folders: &[String]) -> io::Result<u64> {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    for name in folders {
        let folder = root.join(name);
        if folder.is_dir() {
            digest.folder(&folder, name)?;
        }
    }
    Ok(digest.0)
}
