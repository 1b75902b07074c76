//! How each language's experiment is run.

use std::path::{Path, PathBuf};
use tokio::process::Command;

/// One language.
pub(crate) struct Language {
    pub(crate) name: &'static str,
    /// Run first, when there is one. `{target}` is cargo's target folder, here and below.
    prepare: &'static [&'static str],
    /// The first that exists is run; a name without `/` is looked up in `PATH`.
    programs: &'static [&'static str],
    arguments: &'static [&'static str],
    /// Where it is run, below the project's folder.
    folder: &'static str,
    /// What the experiment needs.
    needs: &'static [&'static str],
    /// What makes what is missing.
    maker: &'static str,
}

/// Every language, in the order of the table.
pub(crate) const ALL: [Language; 6] = [
    Language {
        name: "rust",
        prepare: &[],
        programs: &["{target}/release/experiment", "{target}/debug/experiment"],
        arguments: &[],
        folder: ".",
        needs: &[],
        maker: "cargo build --release -p nexthop-rust-examples",
    },
    Language {
        name: "c",
        prepare: &[
            "cc",
            "-std=c11",
            "-O2",
            "-Iinclude",
            "examples/c/experiment.c",
            "{target}/release/libnexthop.a",
            "-lpthread",
            "-ldl",
            "-lm",
            "-o",
            "{target}/release/experiment-c",
        ],
        programs: &["{target}/release/experiment-c"],
        arguments: &[],
        folder: ".",
        needs: &["{target}/release/libnexthop.a"],
        maker: "cargo build --release -p nexthop-ffi",
    },
    Language {
        name: "python",
        prepare: &[],
        programs: &["python/.venv/bin/python"],
        arguments: &["examples/python/experiment.py"],
        folder: ".",
        needs: &[],
        maker: "python/build.sh",
    },
    Language {
        name: "node",
        prepare: &[],
        programs: &["node"],
        arguments: &["examples/node/experiment.mjs"],
        folder: ".",
        needs: &["node/nexthop.node"],
        maker: "node/build.sh",
    },
    Language {
        name: "java",
        prepare: &[],
        programs: &["java"],
        arguments: &["-cp", "java/target/nexthop-0.1.0.jar", "examples/java/Experiment.java"],
        folder: ".",
        needs: &["java/target/nexthop-0.1.0.jar"],
        maker: "java/build.sh",
    },
    Language {
        name: "go",
        prepare: &[],
        programs: &["go"],
        arguments: &["run", "experiment.go"],
        folder: "examples/go",
        needs: &["go/internal/native/libnexthop.a"],
        maker: "go/build.sh",
    },
];

/// The language of that name.
pub(crate) fn named(name: &str) -> Option<&'static Language> {
    ALL.iter().find(|language| language.name == name)
}

impl Language {
    /// What is not there, and how to make it.
    pub(crate) fn missing(&self, root: &Path) -> Option<String> {
        let absent = |file: &str| Some(format!("{file} is not there; `{}` makes it", self.maker));
        if let Some(file) = self.needs.iter().find(|file| !place(root, file).exists()) {
            return absent(file);
        }
        match self.program(root) {
            _ if !self.prepare.is_empty() => None,
            Some(_) => None,
            None if self.programs[0].contains('/') => absent(self.programs[0]),
            None => Some(format!("there is no program {}", self.programs[0])),
        }
    }

    /// What has to be run first.
    pub(crate) fn prepare(&self, root: &Path) -> Option<Command> {
        let (program, arguments) = self.prepare.split_first()?;
        let mut command = Command::new(program);
        command.args(arguments.iter().map(|argument| match argument.starts_with("{target}") {
            true => place(root, argument).into_os_string(),
            false => argument.into(),
        }));
        command.current_dir(root);
        Some(command)
    }

    /// The command to run.
    pub(crate) fn command(&self, root: &Path) -> Option<Command> {
        let mut command = Command::new(self.program(root)?);
        command.args(self.arguments).current_dir(root.join(self.folder));
        Some(command)
    }

    fn program(&self, root: &Path) -> Option<PathBuf> {
        self.programs.iter().find_map(|program| {
            if !program.contains('/') {
                let path = std::env::var_os("PATH")?;
                return std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file());
            }
            let file = place(root, program);
            file.is_file().then_some(file)
        })
    }
}

/// A file of the project, or of cargo's target folder.
fn place(root: &Path, file: &str) -> PathBuf {
    match file.strip_prefix("{target}/") {
        Some(rest) => match std::env::var_os("CARGO_TARGET_DIR") {
            Some(target) => root.join(target).join(rest),
            None => root.join("target").join(rest),
        },
        None => root.join(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_missing() {
        let nowhere = Path::new("/nonexistent");
        let python = named("python").unwrap();
        assert_eq!(
            python.missing(nowhere).unwrap(),
            "python/.venv/bin/python is not there; `python/build.sh` makes it"
        );
        assert!(
            named("node").unwrap().missing(nowhere).unwrap().starts_with("node/nexthop.node is not there")
        );
        assert!(python.command(nowhere).is_none() && named("perl").is_none());
    }
}
