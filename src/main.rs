fn main() -> std::process::ExitCode {
    practicum::cli::main()
}
