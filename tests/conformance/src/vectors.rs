//! Vector files and their cases.

use crate::json::Json;
use std::path::{Path, PathBuf};

/// One case of a vector file.
#[derive(Clone, Debug)]
pub struct Case {
    /// `folder/name.json`
    pub file: String,
    /// Its label in the file.
    pub id: String,
    /// Position in the file, from 0.
    pub index: usize,
    /// Where the fact comes from.
    pub source: String,
    /// The whole case.
    pub value: Json,
    /// The file, for neighbours with another ending.
    pub path: PathBuf,
}

impl Case {
    /// What the case starts from.
    pub fn given(&self) -> &Json {
        self.value.get("given")
    }

    /// What must come out.
    pub fn expect(&self) -> &Json {
        self.value.get("expect")
    }

    /// Name in scripts and reports.
    pub fn name(&self) -> String {
        format!("{}#{} {}", self.file, self.index, self.id)
    }
}

/// Reads every vector file below a folder, in order of their names.
pub fn load(folder: &Path) -> Result<Vec<Case>, String> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let value = Json::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let parent = path
            .parent()
            .and_then(Path::file_name)
            .map_or(String::new(), |name| name.to_string_lossy().into());
        let file = format!("{parent}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        let listed = if value.has("cases") { value.get("cases").items() } else { value.items() };
        let whole = std::slice::from_ref(&value);
        for (index, case) in (if listed.is_empty() { whole } else { listed }).iter().enumerate() {
            let id = [case.get("id"), case.get("name")].into_iter().find_map(Json::str);
            cases.push(Case {
                file: file.clone(),
                id: id.map_or_else(
                    || path.file_stem().unwrap_or_default().to_string_lossy().into(),
                    str::to_owned,
                ),
                index,
                source: case.get("source").text(),
                value: case.clone(),
                path: path.clone(),
            });
        }
    }
    Ok(cases)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "json") {
            files.push(path);
        }
    }
    Ok(())
}
