//! How each language's experiment is run.

use std::path::{Path, PathBuf};

/// One language.
pub(crate) struct Language {
    pub(crate) name: &'static str,
    /// The first that exists is run; a name without `/` is looked up in `PATH`. `{target}` is cargo's target folder.
    pub(crate) programs: &'static [&'static str],
    pub(crate) program: &'static str,
    arguments: &'static [&'static str],
    /// What the experiment needs, and what makes it.
    needs: &'static [(&'static str, &'static str)],
}

/// Every language, in the order of the table.
pub(crate) const ALL: [Language; 6] = [
    Language {
        name: "rust",
        program: "experiment",
        programs: &["{target}/release/experiment", "{target}/debug/experiment"],
        arguments: &[],
        needs: &[],
    },
    Language {
        name: "c",
        program: "examples/c/experiment",
        programs: &["{target}/examples-c/experiment", "build/examples/c/experiment", "examples/c/experiment"],
        arguments: &[],
        needs: &[],
    },
    Language {
        name: "python",
        program: "python/.venv/bin/python",
        programs: &["python/.venv/bin/python"],
        arguments: &["examples/python/experiment.py"],
        needs: &[("examples/python/experiment.py", "python/build.sh")],
    },
    Language {
        name: "node",
        program: "node",
        programs: &["node"],
        arguments: &["examples/node/experiment.mjs"],
        needs: &[("node/nexthop.node", "node/build.sh"), ("examples/node/experiment.mjs", "node/build.sh")],
    },
    Language {
        name: "java",
        program: "java",
        programs: &["java"],
        arguments: &["-cp", "java/target/nexthop-0.1.0.jar", "examples/java/Experiment.java"],
        needs: &[
            ("java/target/nexthop-0.1.0.jar", "java/build.sh"),
            ("examples/java/Experiment.java", "java/build.sh"),
        ],
    },
    Language {
        name: "go",
        program: "go",
        programs: &[
            "{target}/examples-go/experiment",
            "build/examples/go/experiment",
            "examples/go/experiment",
        ],
        arguments: &[],
        needs: &[],
    },
];

/// The language of that name.
pub(crate) fn named(name: &str) -> Option<&'static Language> {
    ALL.iter().find(|language| language.name == name)
}

impl Language {
    /// What is not there, and how to make it.
    pub(crate) fn missing(&self, root: &Path) -> Option<String> {
        let needed = self.needs.iter().find(|(file, _)| !root.join(file).exists());
        if let Some((file, maker)) = needed {
            return Some(format!("{file} is not there; {maker} makes it"));
        }
        match self.found(root) {
            Some(_) => None,
            None => Some(format!("none of {} is there; `make demo` builds it", self.programs.join(", "))),
        }
    }

    /// The command to run in `root`.
    pub(crate) fn command(&self, root: &Path) -> tokio::process::Command {
        let program = self.found(root).unwrap_or_else(|| PathBuf::from(self.program));
        let mut command = tokio::process::Command::new(program);
        command.args(self.arguments);
        command
    }

    fn found(&self, root: &Path) -> Option<PathBuf> {
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
