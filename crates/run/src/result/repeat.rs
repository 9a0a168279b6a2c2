//! The command that produces a result again.

use super::RunResult;

impl RunResult {
    /// Returns the command that produces the same result again, quoted for a shell.
    pub fn repeat_command(&self) -> String {
        let mut words = self.design.name.split(' ');
        let mut command = vec!["nvlab".to_string(), "run".to_string(), quoted(words.next().unwrap_or(""))];
        // `ssd-tlc ftl.spare=12 % path.queue=8`: a word without `=` belongs to the value before it.
        let mut changes: Vec<String> = Vec::new();
        for word in words {
            match changes.last_mut() {
                Some(last) if !word.contains('=') => *last = format!("{last} {word}"),
                _ => changes.push(word.to_string()),
            }
        }
        for change in changes {
            command.extend(["--set".to_string(), quoted(&change)]);
        }
        command.extend(["-w".to_string(), quoted(&self.workload)]);
        command.extend(["--seed".to_string(), self.seed.to_string()]);
        command.extend(["--precondition".to_string(), quoted(&self.precondition.kind)]);
        if let Some(until) = &self.until {
            command.extend(["--until".to_string(), quoted(until)]);
        }
        command.join(" ")
    }
}

/// Quotes a word for a POSIX shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,%+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_to_repeat_is_quoted() {
        let mut run = crate::sample::run("ssd-tlc ftl.spare=12 % path.queue=8", 7);
        run.workload = "zipf theta=0.9 it's".to_string();
        assert_eq!(
            run.repeat_command(),
            "nvlab run ssd-tlc --set 'ftl.spare=12 %' --set path.queue=8 -w 'zipf theta=0.9 it'\\''s' --seed 7 \
             --precondition steady"
        );
    }
}
