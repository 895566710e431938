//! The commands of the program, run as a person would run them.

#[path = "../common/mod.rs"]
mod common;

mod ablate;
mod action;
mod activation;
mod bad_input;
mod blind;
mod calibrate;
mod changed;
mod commands;
mod compare;
mod demo;
mod diagnose;
mod docs;
mod documented_shapes;
mod examples;
mod flags;
mod format_tables;
mod grade;
mod history;
mod install_skill;
mod lint;
mod login;
mod mcp;
mod merge;
mod never;
mod noise;
mod power;
mod predicted;
mod probe;
mod propose;
mod readme;
mod reference_pages;
mod resume;
mod retry;
mod route;
mod schema;
mod shell;
mod suggest;
mod system_calls;
mod terminal;
mod traces;
mod versions;
mod viewer;
mod which_evals;
