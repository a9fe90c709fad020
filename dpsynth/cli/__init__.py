"""The command line: words, options and exit codes; what a command does is done in the rooms below.

- `group`: all commands, found by name and loaded when asked for; errors in words, exit codes;
  scripts that complete commands in a shell
- `cohorts`: what commands do with runs and schemas of linked tables; their data are folders
- `options`: options that several commands share
- `subjects`: what `evaluate` and `audit` are about: a run, or the schema of tables from other tools
- `console`: results for people and, with ``--json``, for programs
- `process`: signals that end a command as Ctrl-C does, and standard streams that never stop it
- `commands/`: one file for each command, or for several that belong together
"""

from dpsynth.cli.group import main

__all__ = ["main"]
