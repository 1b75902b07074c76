//! How each language's experiment is run.

use std::path::{Path, PathBuf};

/// One language.
pub(crate) struct Language {
    pub(crate) name: &'static str,
    /// The first that exists is run; a name without `/` is looked up in `PATH`. `{target}` is cargo's target folder.
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
        programs: &["{target}/release/experiment", "{target}/debug/experiment"],
        arguments: &[],
        folder: ".",
        needs: &[],
        maker: "cargo build --release -p nexthop-rust-examples",
    },
    Language {
        name: "c",
        programs: &["{target}/examples/c/experiment"],
        arguments: &[],
        folder: ".",
        needs: &[],
        maker: "make demo",
    },
    Language {
        name: "python",
        programs: &["python/.venv/bin/python"],
        arguments: &["examples/python/experiment.py"],
        folder: ".",
        needs: &[],
        maker: "python/build.sh",
    },
    Language {
        name: "node",
        programs: &["node"],
        arguments: &["examples/node/experiment.mjs"],
        folder: ".",
        needs: &["node/nexthop.node"],
        maker: "node/build.sh",
    },
    Language {
        name: "java",
        programs: &["java"],
        arguments: &["-cp", "java/target/nexthop-0.1.0.jar", "examples/java/Experiment.java"],
        folder: ".",
        needs: &["java/target/nexthop-0.1.0.jar"],
        maker: "java/build.sh",
    },
    Language {
        name: "go",
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
        if let Some(file) = self.needs.iter().find(|file| !root.join(file).exists()) {
            return Some(format!("{file} is not there; `{}` makes it", self.maker));
        }
        match self.program(root) {
            Some(_) => None,
            None if self.programs[0].contains('/') => {
                Some(format!("{} is not there; `{}` makes it", self.programs[0], self.maker))
            }
            None => Some(format!("there is no program {}", self.programs[0])),
        }
    }

    /// The command to run.
    pub(crate) fn command(&self, root: &Path) -> Option<tokio::process::Command> {
        let mut command = tokio::process::Command::new(self.program(root)?);
        command.args(self.arguments).current_dir(root.join(self.folder));
        Some(command)
    }

    fn program(&self, root: &Path) -> Option<PathBuf> {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
        self.programs.iter().find_map(|program| {
            if !program.contains('/') {
                let path = std::env::var_os("PATH")?;
                return std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file());
            }
            let file = match program.strip_prefix("{target}/") {
                Some(rest) => target.join(rest),
                None => root.join(program),
            };
            file.is_file().then_some(file)
        })
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
