#!/usr/bin/env node
// Starts the program for this machine. It is in a package of its own, one for each platform.
"use strict";

const { spawn } = require("node:child_process");

const name = `practicum-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/practicum`);
} catch {
  console.error(
    `error: there is no practicum for ${process.platform} ${process.arch}, or the package ${name} was not installed ` +
      "(npm leaves it out with --omit=optional). On Windows, use WSL.",
  );
  process.exit(2);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// The terminal sends Ctrl-C to both. The program decides how to end, and this process ends with it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    if (signal !== "SIGINT") child.kill(signal);
  });
}
child.on("error", (error) => {
  console.error(`error: ${program} cannot be started: ${error.message}`);
  process.exit(3);
});
child.on("exit", (code, signal) => process.exit(signal ? 130 : code));
