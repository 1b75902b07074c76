//! Events on their way to a log, on a clock moved by hand.

use nexthop::event_log::{to_file, to_writer};
use nexthop::{Choice, Clock, Engine, Outcome, RequestHead};
use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const DOCUMENT: &str = "clusters: {web: {hosts: [10.0.0.1:80, 10.0.0.2:80], \
    outlier: {consecutive_5xx: 2, eject: 30s, interval: 10s, max_percent: 100}}}";
/// Rounds are made by hand.
const NEVER: Duration = Duration::from_secs(3600);

fn mesh() -> Arc<Engine> {
    Arc::new(Engine::builder().text(DOCUMENT).workers(1).seed(7).clock(Clock::Manual).build().unwrap())
}

/// Lets both hosts fail until they are ejected.
fn eject_all(mesh: &Engine) {
    let head = RequestHead { target: mesh.resolve("web").unwrap(), ..RequestHead::default() };
    for _ in 0..4 {
        let mut call = mesh.request(&head, mesh.now());
        let Ok(Choice::Attempt(attempt)) = call.choose_host(mesh.now()) else { panic!("no attempt") };
        attempt.complete(&Outcome::status(500), mesh.now()).unwrap();
    }
}

fn actions(lines: &[String]) -> Vec<String> {
    let read = |line: &String| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["cluster_name"], "web");
        event["action"].as_str().unwrap_or("none").to_owned()
    };
    lines.iter().map(read).collect()
}

/// Where a log writes to, for the test to read.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn lines(&self) -> Vec<String> {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap().lines().map(str::to_owned).collect()
    }
}

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_in_order_and_maintenance_without_traffic() {
    let (mesh, kept) = (mesh(), Kept::default());
    let log = mesh.log_events(NEVER, to_writer(kept.clone())).unwrap();
    eject_all(&mesh);
    log.flush().unwrap();
    assert_eq!(actions(&kept.lines()), ["EJECT", "EJECT"]);
    // Nobody calls but the log: their time is over.
    mesh.advance(Duration::from_secs(31)).unwrap();
    log.close().unwrap();
    assert_eq!(actions(&kept.lines()), ["EJECT", "EJECT", "UNEJECT", "UNEJECT"]);
}

#[test]
fn a_line_that_could_not_be_written_comes_first() {
    let (mesh, kept) = (mesh(), Kept::default());
    let full = Arc::new(Mutex::new(false));
    let mut write = to_writer(kept.clone());
    let log = mesh
        .log_events(NEVER, {
            let full = Arc::clone(&full);
            move |line| {
                if *full.lock().unwrap() { Err(io::ErrorKind::StorageFull.into()) } else { write(line) }
            }
        })
        .unwrap();
    // The thread's own first round is over before there is anything to write.
    log.flush().unwrap();
    *full.lock().unwrap() = true;
    eject_all(&mesh);
    assert_eq!(log.flush().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(log.error().is_some() && kept.lines().is_empty());
    *full.lock().unwrap() = false;
    assert_eq!(log.flush().unwrap(), 2);
    assert_eq!((log.error(), actions(&kept.lines())), (None, vec!["EJECT".to_owned(); 2]));
}

#[test]
fn a_file_may_be_moved_away() {
    let (mesh, folder) =
        (mesh(), std::env::temp_dir().join(format!("nexthop-events-{}", std::process::id())));
    std::fs::create_dir_all(&folder).unwrap();
    let (path, old) = (folder.join("events.jsonl"), folder.join("events.jsonl.1"));
    let read = |path| {
        let text = std::fs::read_to_string(path).unwrap();
        actions(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    let log = mesh.log_events(NEVER, to_file(&path)).unwrap();
    eject_all(&mesh);
    log.flush().unwrap();
    std::fs::rename(&path, &old).unwrap();
    mesh.advance(Duration::from_secs(31)).unwrap();
    drop(log);
    assert_eq!((read(&old), read(&path)), (vec!["EJECT".to_owned(); 2], vec!["UNEJECT".to_owned(); 2]));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_thread_writes_by_itself_and_holds_the_engine() {
    let (mesh, (tell, told)) = (mesh(), mpsc::channel());
    let log = mesh
        .log_events(Duration::from_millis(1), move |line| {
            tell.send(line.to_owned()).map_err(io::Error::other)
        })
        .unwrap();
    eject_all(&mesh);
    drop(mesh);
    let lines: Vec<String> = (0..2).map(|_| told.recv_timeout(Duration::from_secs(30)).unwrap()).collect();
    assert_eq!(actions(&lines), ["EJECT", "EJECT"]);
    drop(log);
    assert!(told.recv().is_err(), "the sink is gone with its log");
}

#[test]
fn a_sink_that_panics_has_failed() {
    let (mesh, kept) = (mesh(), Kept::default());
    let mut write = to_writer(kept.clone());
    let mut calls = 0;
    eject_all(&mesh);
    let log = mesh
        .log_events(NEVER, move |line| {
            calls += 1;
            assert!(calls > 1, "the first call of this test's sink");
            write(line)
        })
        .unwrap();
    // Either the thread's first round met the panic, or one of these.
    let written = log.flush().or_else(|_| log.flush()).unwrap();
    assert_eq!((written, actions(&kept.lines())), (2, vec!["EJECT".to_owned(); 2]));
}
