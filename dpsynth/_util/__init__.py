"""Helpers that know nothing of privacy or health: documents read strictly, words, pages, workers.

Each is imported from its own file.

- `arguments`: arguments of public functions, named in messages by their types and never by their
  content
- `clock`: times of day, read from text, written back, and counted in seconds since midnight
- `dependencies`: the libraries of a full installation, which a light one does without
- `engines`: engines: this process, workers of this machine, or a Dask cluster, and what each
  promises
- `environment`: set, not set, and never set to nothing
- `field_reader`: one mapping of a schema document with its place: typed reads that note what is
  wrong and go on
- `formatting`: numbers and names as pages show them: short, honest when rounded, nothing
  invisible
- `html`: how every page is rendered: escaped, strict about names, and no text as it is
- `memory_limit`: how much memory this process can have
- `messages`: what was found, what was expected, what was perhaps meant
- `notebook`: progress of long verbs in a notebook: a bar of tqdm, or a line for each stage
- `outside_names`: the full name of a generator of another package: the package, its version, and
  its own name
- `output`: the one place where text leaves the program for a screen: nothing in it obeys, hides or
  misleads
- `seeds`: drawn where none is given, and held to their range
- `short_repr`: how objects show themselves: one line, and nothing private
- `strict_json`: JSON documents, written one way and read strictly
- `strict_yaml`: YAML and JSON that a person wrote, parsed strictly: plain values, and nothing is
  run
- `svg`: static, small, coloured by the page's own classes, named for readers
- `torchrun`: whether this process is one of several that ``torchrun`` started, and which
- `whole_files`: files that are read whole: plain files of a limited size, whatever a path leads to
- `workers`: a pool of processes that do numbered pieces of work, one core each
- `written_files`: small files that a person writes (a policy, settings), with all their mistakes
  named at once
"""
