//! Tolls from a file to the disk, by the command line: how long it takes, and the memory of both programs.

use crate::{Outcome, Server, release};
use serde_json::{Value, json};
use std::{
    fmt::Write as _,
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Vehicles whose tags the statement repeats.
const VEHICLES: u64 = 500;

/// Imports 50,000 tolls, then a million, then the million again.
pub(crate) fn measure(server: &Server) -> Outcome<()> {
    let built = Command::new("cargo").args(["build", "--release", "--locked", "-p", "rental-cli"]).status()?;
    if !built.success() {
        return Err("cargo build failed".into());
    }
    let organization = server.admin("/admin/v1/organizations", &json!({"name": "Imports"}))?;
    let organization = organization["id"].as_str().unwrap_or_default().to_owned();
    let key = server.admin("/admin/v1/api_keys", &json!({"organization_id": organization, "scope": "read_write"}))?;
    for n in 0..VEHICLES {
        let vehicle = json!({"name": format!("Car {n}"), "transponder_number": tag(n)});
        crate::post(&server.address, "/v1/vehicles", key["key"].as_str().unwrap_or_default(), &vehicle)?;
    }
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("statement.csv");
    println!(
        "{:>10} {:>9} {:>10} {:>10} {:>8} {:>10}",
        "rows", "seconds", "created", "duplicates", "CLI MB", "server MB"
    );
    for (from, rows) in [(0, 50_000), (50_000, 1_000_000), (50_000, 1_000_000)] {
        write(&file, from, rows)?;
        import(server, &organization, &file, rows)?;
    }
    Ok(())
}

fn tag(vehicle: u64) -> String {
    format!("004{vehicle:08}")
}

/// A statement in the generic format.
fn write(path: &Path, from: u64, rows: u64) -> Outcome<()> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount")?;
    let mut line = String::new();
    for n in from..from + rows {
        line.clear();
        let (day, second) = (1 + n / 86_400 % 28, n % 86_400);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(
            line,
            "{n},2026-06-{day:02}T{hour:02}:{minute:02}:{second:02}-04:00,MTAB&T,RKB,,,{},6.94",
            tag(n % VEHICLES)
        )?;
        writeln!(file, "{line}")?;
    }
    Ok(file.flush()?)
}

fn import(server: &Server, organization: &str, file: &Path, rows: u64) -> Outcome<()> {
    let began = Instant::now();
    let mut process = Command::new(release("rental-cli"))
        .args(["tolls", "import", "--json", "--organization", organization])
        .arg(file)
        .args(["--base-url", &format!("http://{}", server.address)])
        .env("RENTAL_ADMIN_TOKEN", crate::TOKEN)
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut ours, mut theirs) = (0, 0);
    while process.try_wait()?.is_none() {
        ours = ours.max(crate::resident_mb(process.id()).unwrap_or(0));
        theirs = theirs.max(server.resident_mb()?);
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = began.elapsed().as_secs_f64();
    let answer: Value = serde_json::from_slice(&process.wait_with_output()?.stdout)?;
    println!("{rows:10} {took:9.2} {:>10} {:>10} {ours:8} {theirs:10}", answer["created"], answer["duplicates"]);
    Ok(())
}
