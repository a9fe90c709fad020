"""Usefulness: would someone who has only the synthetic table learn what the source teaches?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpsynth.eval.core import Measure, PairedTables, PartResult, Tables
from dpsynth.eval.utility.effects import effects, odds_ratios
from dpsynth.eval.utility.group_means import group_means
from dpsynth.eval.utility.learners import PredictionTask, tasks
from dpsynth.eval.utility.survival import survival
from dpsynth.eval.utility.tstr import ModelTrial, calibration, importance, measures, trials


def usefulness(
    tables: Tables, rng: np.random.Generator, *, tried: Sequence[ModelTrial] | None = None
) -> PartResult:
    """Measure models, odds ratios, group means and survival against the source.

    Args:
        tables: what is compared.
        rng: draws samples, and seeds models.
        tried: the trials of all targets, if `trials` has made them already (its notes are the
            caller's then).
    """
    all_tasks, _ = tasks(tables)
    notes: list[str] = []
    if tried is None:
        tried, trial_notes = trials(tables, rng)
        notes += trial_notes
    measures: list[Measure] = []
    targets: list[dict[str, Any]] = []
    ratios: list[dict[str, Any]] = []
    for task in all_tasks:
        measured, target, said_of = _models(task, [t for t in tried if t.task == task], rng)
        measures += measured
        notes += said_of
        targets += [] if target is None else [target]
        if task.level is None:
            notes.append(f"{task.name}: a number has no odds ratios")
            continue
        odds, entry, said_of = odds_ratios(tables, task, rng)
        notes += said_of
        measures += [] if odds is None else [odds]
        ratios += [] if entry is None else [entry]
    means, cells, said_of = group_means(tables, rng)
    notes += said_of
    measures += [] if means is None else [means]
    curves, followed, said_of = survival(tables, rng)
    notes += said_of
    measures += curves
    binary = [task for task in all_tasks if task.level is not None]
    ratios_by_group: list[dict[str, Any]] = []
    if binary:
        sides = PairedTables.of(tables, rng)
        for task in binary:
            sizes, entry, said_of = effects(sides, task)
            notes += said_of
            measures += sizes
            ratios_by_group += [] if entry is None else [entry]
    details = {
        "effects": ratios_by_group,
        "targets": targets,
        "odds_ratios": ratios,
        "group_means": cells,
        "survival": followed,
    }
    return PartResult(tuple(measures), details, tuple(notes))


def _models(
    task: PredictionTask, tried: Sequence[ModelTrial], rng: np.random.Generator
) -> tuple[list[Measure], dict[str, Any] | None, list[str]]:
    """Measure both models of one target."""
    if not tried:
        return [], None, []
    results: list[Measure] = []
    models, notes = [], []
    table: list[dict[str, Any]] = []
    for trial in tried:
        measured, entry = measures(trial, rng)
        results += measured
        models.append(entry)
        if trial.model != "boosting":
            continue
        results += [calibration(trial, rng)] if task.level is not None else []
        agreement, table, note = importance(trial, rng)
        results += [] if agreement is None else [agreement]
        notes += [] if note is None else [note]
    target = {
        "name": task.name,
        "title": task.title,
        "kind": task.kind,
        "class": task.label,
        "models": models,
        "importance": table,
    }
    return results, target, notes
