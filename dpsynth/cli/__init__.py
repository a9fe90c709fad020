"""The command line: words, options and exit codes; what a command does is done in the rooms below.

- `group`: all commands, found by name and loaded when asked for; errors in words, exit codes
- `clinic_demo`: the part of the demo with linked tables: the histories of a simulated clinic
- `cohorts`: what commands do with runs and schemas of linked tables; their data are folders
- `discoveries`: what a plan says of the codes that it would find
- `forecasts`: the forecast of `plan`: its options, and its lines on a terminal
- `event_words`: an event of a plan in a few words
- `ledger_lines`: fits and budgets, for people
- `linked_samples`: cohorts that `sample` draws from a run of linked tables; replicates of any run
- `options`: options that several commands share
- `subjects`: what `evaluate` and `audit` are about: a run, or the schema of tables from other tools
- `console`: results for people and, with ``--json``, for programs
- `progress_line`: the line on a terminal that shows what a command does, never still for long
- `whole_help`: groups of commands: help with whole summaries, and what was meant by an unknown
  command
- `open_points`: what is open before a bundle is signed: in the bundle itself, and in the internal
  results
- `streams`: standard output and error that never stop the work
- `signals`: signals that end a command as Ctrl-C does
- `completion`: scripts that complete commands in a shell
- `commands/`: one file for each command, or for several that belong together
"""

from dpsynth.cli.group import main

__all__ = ["main"]
