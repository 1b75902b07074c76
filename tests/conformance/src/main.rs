//! The driver: converts, runs, judges, counts.
#![expect(clippy::print_stdout, reason = "its report goes to standard output")]

use nexthop_conformance::convert::{self, Job};
use nexthop_conformance::coverage::{self, How};
use nexthop_conformance::judge::figures;
use nexthop_conformance::run::{self, LANGUAGES};
use nexthop_conformance::trace::Trace;
use nexthop_conformance::vectors::{self, Case};
use nexthop_conformance::{convert::Facing, record};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What the command line asks for.
struct Args {
    not_pending: bool,
    try_pending: bool,
    record: bool,
    list: bool,
    languages: Vec<String>,
    only: Option<String>,
    dump: Option<PathBuf>,
    folders: Vec<PathBuf>,
}

fn args() -> Result<Args, String> {
    let mut args = Args {
        not_pending: false,
        try_pending: false,
        record: false,
        list: false,
        languages: LANGUAGES.map(str::to_owned).to_vec(),
        only: None,
        dump: None,
        folders: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        match word.as_str() {
            "--not-pending" => args.not_pending = true,
            "--try-pending" => args.try_pending = true,
            "--record" => args.record = true,
            "--list" => args.list = true,
            "--langs" => args.languages = value()?.split(',').map(str::to_owned).collect(),
            "--only" => args.only = Some(value()?),
            "--dump" => args.dump = Some(value()?.into()),
            flag if flag.starts_with('-') => {
                return Err(format!(
                    "unknown {flag}; known: --not-pending, --try-pending, --record, --list, --langs a,b, --only PATTERN, --dump FOLDER"
                ));
            }
            folder => args.folders.push(folder.into()),
        }
    }
    if let Some(unknown) = args.languages.iter().find(|language| !LANGUAGES.contains(&language.as_str())) {
        return Err(format!("unknown language {unknown}; known: {}", LANGUAGES.join(", ")));
    }
    Ok(args)
}

/// The workspace: the nearest folder above that has this suite.
fn root() -> Result<PathBuf, String> {
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let found = here.ancestors().find(|folder| folder.join("tests/conformance/coverage.toml").is_file());
    found
        .map(Path::to_owned)
        .ok_or_else(|| "tests/conformance/coverage.toml is not above this folder".to_owned())
}

fn main() -> ExitCode {
    match args().and_then(|args| suite(&args)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
    files: BTreeMap<String, [usize; 4]>,
}

impl Tally {
    fn count(&mut self, file: &str, column: usize) {
        self.files.entry(file.to_owned()).or_default()[column] += 1;
        match column {
            0 => self.passed += 1,
            1 => self.failed += 1,
            2 => self.skipped += 1,
            _ => {}
        }
    }
}

fn suite(args: &Args) -> Result<usize, String> {
    let root = root()?;
    if args.record {
        return record::write(&root).map(|()| 0);
    }
    let text = std::fs::read_to_string(root.join("tests/conformance/coverage.toml"))
        .map_err(|error| error.to_string())?;
    let entries = coverage::read(&text)?;
    let folders =
        if args.folders.is_empty() { vec![root.join("tests/vectors")] } else { args.folders.clone() };
    let mut cases = Vec::new();
    for folder in &folders {
        cases.extend(vectors::load(folder)?);
    }
    if let Some(only) = &args.only {
        cases.retain(|case| coverage::glob(only, &case.file));
    }
    let mut tally = Tally::default();
    let mut facing = Facing::default();
    let mut white: BTreeMap<(String, PathBuf), run::WhiteBox> = BTreeMap::new();
    for case in &cases {
        match coverage::find(&entries, case) {
            None => fail(&mut tally, case, &["no entry of coverage.toml covers this case".into()]),
            Some(How::NotApplicable(_)) => tally.count(&case.file, 2),
            Some(How::Pending(_)) if args.try_pending => match convert::job(case) {
                Ok(job) => facing.jobs.push((case.clone(), job)),
                Err(error) => fail(&mut tally, case, &[format!("not converted: {error}")]),
            },
            Some(How::Pending(_)) if args.not_pending => tally.count(&case.file, 3),
            Some(How::Pending(reason)) => fail(&mut tally, case, &[format!("waits: {reason}")]),
            Some(How::WhiteBox(package, test)) => {
                let folder = case.path.ancestors().nth(2).unwrap_or(&case.path);
                let folder =
                    folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
                let found = white.entry((package.clone(), folder.clone())).or_insert_with(|| {
                    run::tests(&root, package, &folder).unwrap_or_else(|error| {
                        eprintln!("{error}");
                        run::WhiteBox::default()
                    })
                });
                match found.fault(package, test, &case.path) {
                    None => tally.count(&case.file, 0),
                    Some(fault) => fail(&mut tally, case, &[fault]),
                }
            }
            Some(How::Faces) => match convert::job(case) {
                Ok(job) => facing.jobs.push((case.clone(), job)),
                Err(error) => fail(&mut tally, case, &[format!("not converted: {error}")]),
            },
        }
    }
    if let Some(folder) = &args.dump {
        dump(folder, &facing.jobs)?;
    }
    play(args, &root, &facing, &mut tally)?;
    for (file, [passed, failed, skipped, pending]) in tally.files.iter().filter(|_| args.list) {
        println!("{file}: {passed} passed, {failed} failed, {skipped} skipped, {pending} pending");
    }
    let judged: usize = tally.files.values().flatten().sum();
    let extra = usize::from(args.only.is_none());
    if judged != cases.len() + extra {
        return Err(format!("{} cases were read, {judged} judged", cases.len() + extra));
    }
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    Ok(tally.failed)
}

fn fail(tally: &mut Tally, case: &Case, differences: &[String]) {
    let given: String = case.given().to_string().chars().take(300).collect();
    let expected: String = case.expect().to_string().chars().take(300).collect();
    println!("FAILED {}", case.name());
    if !case.given().is_null() {
        println!("  given {given}");
        println!("  expected {expected}");
    }
    for difference in differences.iter().take(8) {
        println!("  {difference}");
    }
    if differences.len() > 8 {
        println!("  and {} more", differences.len() - 8);
    }
    tally.count(&case.file, 1);
}

fn play(args: &Args, root: &Path, facing: &Facing, tally: &mut Tally) -> Result<(), String> {
    let mut scripts: Vec<(String, String)> = Vec::new();
    for (_, job) in &facing.jobs {
        for (name, script) in job.names.iter().zip(&job.scripts) {
            scripts.push((name.clone(), script.lines.join("\n") + "\n"));
        }
    }
    let recorded = (args.only.is_none()).then(|| record::read(root)).transpose()?;
    if let Some((script, _)) = &recorded {
        scripts.push((record::NAME.to_owned(), script.clone()));
    }
    let mut traces = Vec::new();
    for language in &args.languages {
        traces.push((
            language.as_str(),
            run::play(root, language, &scripts).unwrap_or_else(|error| {
                eprintln!("{language}: {error}");
                BTreeMap::new()
            }),
        ));
    }
    for (case, job) in &facing.jobs {
        let mut differences = Vec::new();
        for (language, traces_of) in &traces {
            let reference = (*language != traces[0].0).then(|| &traces[0].1);
            differences.extend(
                judged(job, traces_of, reference).into_iter().map(|line| format!("{language}: {line}")),
            );
        }
        let first =
            traces[0].1.get(&job.names[0]).and_then(|lines| Trace::read(lines).ok()).unwrap_or_default();
        for line in figures::beside(&case.value, &first) {
            println!("{line}");
        }
        if differences.is_empty() { tally.count(&case.file, 0) } else { fail(tally, case, &differences) }
    }
    if let Some((_, expected)) = recorded {
        let mut good = true;
        for (language, traces_of) in &traces {
            let got = traces_of.get(record::NAME).cloned().unwrap_or_default();
            if let Some(difference) = record::compare(&expected, &got) {
                println!("FAILED {}\n  {language}: {difference}", record::NAME);
                good = false;
            }
        }
        tally.count(record::NAME, usize::from(!good));
    }
    Ok(())
}

fn judged(
    job: &Job,
    traces: &BTreeMap<String, Vec<String>>,
    reference: Option<&BTreeMap<String, Vec<String>>>,
) -> Vec<String> {
    let mut read = Vec::new();
    let mut out = Vec::new();
    for name in &job.names {
        let Some(lines) = traces.get(name) else { return vec!["nothing was played".to_owned()] };
        match Trace::read(lines) {
            Ok(trace) => read.push(trace),
            Err(error) => return vec![error],
        }
        if let Some(wanted) =
            reference.and_then(|reference| reference.get(name)).filter(|wanted| *wanted != lines)
        {
            let at = wanted
                .iter()
                .zip(lines)
                .position(|(a, b)| a != b)
                .unwrap_or_else(|| wanted.len().min(lines.len()));
            let line = |lines: &[String]| lines.get(at).map_or("the end", String::as_str).to_owned();
            out.push(format!("trace differs at line {at}: expected {}, got {}", line(wanted), line(lines)));
        }
    }
    out.extend((job.judge)(&read));
    out
}

/// Writes the scripts, for a look at a single case.
fn dump(folder: &Path, jobs: &[(Case, Job)]) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    for (case, job) in jobs {
        let name: String =
            case.name().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let text: String = job.scripts.iter().map(|script| script.lines.join("\n") + "\n").collect();
        std::fs::write(folder.join(name + ".jsonl"), text).map_err(|error| error.to_string())?;
    }
    Ok(())
}
