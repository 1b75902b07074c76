//! `nexthop-lab [--offset N] [--refuse PORT]...`: prints `ready` when all ports listen, ends when stdin ends or on
//! SIGTERM.

use nexthop_lab::{Lab, Settings};
use std::io::Write;
use std::process::ExitCode;

/// Stdin that ends so soon was not held by anybody.
const AT_ONCE: std::time::Duration = std::time::Duration::from_millis(500);

fn main() -> ExitCode {
    let settings = match arguments() {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("nexthop-lab: {error}\nusage: nexthop-lab [--offset N] [--refuse PORT]...");
            return ExitCode::from(2);
        }
    };
    let run =
        || tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve(&settings));
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nexthop-lab: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Settings, lexopt::Error> {
    use lexopt::{Arg, ValueExt};
    let mut settings = Settings::default();
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("offset") => settings.offset = parser.value()?.parse()?,
            Arg::Long("refuse") => settings.refuse.push(parser.value()?.parse()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(settings)
}

async fn serve(settings: &Settings) -> std::io::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let lab = Lab::start(settings).await?;
    let mut stdout = std::io::stdout();
    stdout.write_all(b"ready\n")?;
    stdout.flush()?;
    // The process that started the lab holds its stdin: it ends with it, however that ends.
    let (closed, mut end) = tokio::sync::mpsc::channel::<()>(1);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        drop(closed);
    });
    let begun = std::time::Instant::now();
    tokio::select! {
        _ = end.recv() => {
            if begun.elapsed() < AT_ONCE {
                eprintln!("nexthop-lab: standard input is at its end, and the lab ends with it; hold it open");
            }
        }
        _ = terminate.recv() => {}
    }
    lab.stop().await;
    Ok(())
}
