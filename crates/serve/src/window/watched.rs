//! A served window on a live page. What it shows is the device behind the resident pages: the program's own loads and stores are
//! not seen by anybody, only the pages that are fetched and written back.

use super::handler::Shared;
use crate::http::watched::{Action, Watched};
use crate::served::View;
use std::sync::Arc;

/// A window that pages watch.
pub(super) struct WatchedWindow {
    name: String,
    shared: Arc<Shared>,
}

impl WatchedWindow {
    pub fn new(name: &str, shared: Arc<Shared>) -> WatchedWindow {
        WatchedWindow { name: name.to_string(), shared }
    }
}

impl Watched for WatchedWindow {
    fn name(&self) -> &str {
        &self.name
    }

    fn view(&self) -> View {
        self.shared.engine().view()
    }

    fn act(&self, _: Action) -> Result<String, String> {
        Err("a memory window can only be watched: its program's loads and stores bypass the server, and its resident pages \
             survive a power cut"
            .into())
    }
}
