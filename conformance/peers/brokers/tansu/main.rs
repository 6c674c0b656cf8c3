//! Tansu's command line with its store in memory: the package tansu-cli has no program of its own.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match tansu_cli::Cli::main().await {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    }
}
