"""The office of the person who prepares a release, and may not see rows: a schema and settings.

Of a table, this role reads the headings, as a draft does, and nothing else. Its files are the
schema and ``dpsynth.yaml``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from dpsynth._util.field_reader import is_todo
from dpsynth._util.formatting import percent_at_most
from dpsynth._util.messages import shown
from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.certificate import attack_conditions, attack_rates_of
from dpsynth.draft import Draft, draft_any, flow
from dpsynth.errors import DpsynthError, InputError, Problem, SchemaError
from dpsynth.files import check_vacant, scratch_folder, write_new
from dpsynth.forecasts.capacity_words import capacity_lines
from dpsynth.forecasts.plan_words import cost_text, describe_event, unit_noun, unit_text
from dpsynth.ledger import Account, Ledger, State, accounts
from dpsynth.models.registry import AUTO, DEFAULT, KNOWN
from dpsynth.office.columns import (
    MEANING,
    OPEN,
    PROPOSED,
    STATES,
    ColumnRow,
    columns_of,
    place_of,
    tables_of,
    with_confirmed,
)
from dpsynth.office.inputs import (
    CHOICE,
    COLUMN,
    NUMBER,
    ONE_TABLE,
    PACKAGE,
    PATIENTS_TABLE,
    REST,
    ROWS_TABLE,
    TEST,
    Input,
    beside,
    grouped,
    shown_values,
    written_part,
)
from dpsynth.office.office_folder import ENDINGS, STALE, OfficeFolder, command, items_of, to
from dpsynth.office.server import Action, Gate, Page
from dpsynth.office.written_yaml import Place, WrittenYaml, at, with_part
from dpsynth.policy import Policy, figure_of, policy_lines
from dpsynth.policy.rules import SINGLE
from dpsynth.privacy import Unit
from dpsynth.schema import AnySchema, any_from_dict, is_linked, load_any
from dpsynth.synthesis import Wish, capacity, estimated, prepare, require_small_delta
from dpsynth.synthesis.policy_preview import UNNAMED, asked
from dpsynth.workflow.settings import FILE, mistakes_of

HOME, DRAFT, COLUMNS, TABLES = "/", "/draft", "/columns", "/tables"
SETTINGS, BUDGET, FINISH = "/settings", "/budget", "/finish"
STEPS = (
    (HOME, "Overview"),
    (DRAFT, "Draft"),
    (COLUMNS, "Columns"),
    (TABLES, "Tables"),
    (SETTINGS, "Names"),
    (BUDGET, "Budget"),
    (FINISH, "Hand over"),
)
EPSILONS = (0.1, 0.3, 1.0, 2.0, 3.0, 5.0, 10.0)  # of the table of risks
MAX_EPSILON = 1000.0  # beyond it, a page would compute for long and protect nobody
_DELTA = 1e-6
_RELEASE = (
    Input(
        ("dataset",),
        "Name of the dataset",
        "under which the ledger counts what these patients have spent; the same for every release",
    ),
    Input(("output",), "Folder of the bundle", "new, such as bundle"),
    Input(("purpose",), "Purpose", "a few words for the ledger"),
    Input(("tier",), "Tier", "of the office's policy, if it has tiers"),
    Input(("policy",), "Policy file", "only where the ledger has adopted none"),
    Input(("model",), "Generator", "", CHOICE, (AUTO, *KNOWN)),
    Input(("holdout",), "Share of patients held out", "from 0 to 1; usually 0.2", NUMBER),
    Input(("about", "title"), "Public title"),
    Input(("about", "publisher"), "Publisher"),
    Input(("about", "contact"), "Contact", "an e-mail or web address"),
    Input(("about", "licence"), "Licence", "such as CC-BY-4.0"),
    Input(("about", "intended_use"), "Meant for"),
    Input(("about", "limits"), "Not meant for"),
)
_HIDDEN = ("dpsynth_run", "schema", "data", "epsilon", "delta")  # not changed on that page


@dataclass(frozen=True)
class Prepare:
    """The pages and the forms of this role.

    Attributes:
        office: the folder and how pages are shown.
        header: a table whose headings the draft reads, as the command named it.
        dictionary: a data dictionary, as the command named it.
    """

    office: OfficeFolder
    header: str | None = None
    dictionary: str | None = None

    @classmethod
    def of(
        cls, folder: Path, gate: Gate, header: str | None = None, dictionary: str | None = None
    ) -> Prepare:
        """Take a folder."""
        return cls(OfficeFolder(folder, gate, "prepare", STEPS), header, dictionary)

    @property
    def pages(self) -> dict[str, Page]:
        """What a GET shows, by path."""
        return {
            HOME: self.home,
            DRAFT: self.draft_page,
            COLUMNS: self.columns_page,
            "/column": self.column_page,
            TABLES: self.tables_page,
            "/table": self.table_page,
            SETTINGS: self.settings_page,
            BUDGET: self.budget_page,
            FINISH: self.finish_page,
        }

    @property
    def actions(self) -> dict[str, Action]:
        """What a form does, by path."""
        return {
            DRAFT: self.draft,
            "/confirm": self.save_confirmed,
            "/column": self.save_column,
            "/table": self.save_table,
            SETTINGS: self.save_settings,
            BUDGET: self.save_budget,
            FINISH: self.finish,
        }

    # the folder ---------------------------------------------------------------------------------

    def _schema(self) -> tuple[Path, WrittenYaml]:
        """Return the schema's file.

        Raises:
            InputError: there is none yet.
        """
        path = self.office.schema_path()
        if path is None:
            raise InputError("there is no schema yet; make a draft first")
        return path, WrittenYaml.read(path)

    def home(self, request: Request) -> Response:
        """Show how far the folder is."""
        path = self.office.schema_path()
        file = None if path is None else WrittenYaml.read(path)
        rows = [] if file is None else columns_of(file)
        settings = self.office.settings()
        return self.office.show(
            "prepare_home.html",
            HOME,
            schema=None if path is None else path.name,
            counts=_counts(rows),
            draft=file is not None and bool(at(file.document, ("dpsynth", "draft"))),
            problems=[] if file is None else list(map(str, _problems(file.document))),
            gaps=[] if file is None else _gaps(file.document),
            settings=_known_settings(settings),
            missing=self._missing(),
            file=FILE,
        )

    # the draft ----------------------------------------------------------------------------------

    def draft_page(self, request: Request) -> Response:
        """Ask for a table and a dictionary."""
        return self._draft_page({})

    def _draft_page(self, given: Mapping[str, str], sentence: str = "") -> Response:
        path = self.office.schema_path()
        values = {"table": self.header or "", "dictionary": self.dictionary or "", **given}
        line = ["schema", "draft"]
        for option, name in (("--from-header", "table"), ("--from", "dictionary")):
            line += [option, values[name]] if values[name] else []
        line += ["-o", str(self.office.folder / f"NAME{ENDINGS[0]}")]
        return self.office.show(
            "prepare_draft.html",
            DRAFT,
            status=400 if sentence else 200,
            schema=None if path is None else path.name,
            values=values,
            sentence=sentence,
            command=command(*line, "-o", self.office.folder / f"NAME{ENDINGS[0]}")
            if len(line) > 2
            else "",
        )

    def draft(self, request: Request, form: FormData) -> Response:
        """Make a draft from headings and a dictionary, and write it as a new file."""
        names = ("table", "dictionary", "name", "delimiter", "encoding", "sheet", "header_row")
        given = {name: self.office.typed(form, name) for name in names}
        upload = form.get("upload")
        try:
            if self.office.schema_path() is not None:
                raise InputError("the folder has a schema already; change that one")
            with scratch_folder(self.office.folder) as scratch:
                dictionary: str | Path | None = given["dictionary"] or None
                if isinstance(upload, UploadFile) and upload.filename:
                    dictionary = scratch / _plain_name(upload.filename)
                    dictionary.write_bytes(upload.file.read())
                try:
                    made = _drafted(given, dictionary)
                except DpsynthError as error:
                    words = str(error).replace(f"{scratch}/", "")
                    raise InputError(words) from None
            path = self._written(made, given["name"])
        except DpsynthError as error:
            return self._draft_page(given, str(error))
        return self.office.show(
            "prepare_drafted.html",
            DRAFT,
            schema=path.name,
            made=made,
            counts=_counts(columns_of(WrittenYaml.read(path))),
        )

    def _written(self, made: Draft, name: str) -> Path:
        document = parse_yaml(made.text.encode(), "draft")
        ending = ENDINGS[1] if is_linked(document) else ENDINGS[0]
        stem = name or str(document["name"])
        if not all(letter.isalnum() or letter in "._-" for letter in stem) or stem[0] == ".":
            raise InputError("a name has letters, digits, '.', '_' and '-' only")
        path = self.office.folder / f"{stem.removesuffix(ending)}{ending}"
        check_vacant(path)
        write_new(path, made.text.encode())
        return path

    # columns ------------------------------------------------------------------------------------

    def columns_page(self, request: Request) -> Response:
        """Show the columns as one table, or those of one state or table."""
        query = request.query_params
        return self._columns_page(
            query.get("state", ""), query.get("table", ""), by=query.get("by", "")
        )

    def _columns_page(self, state: str, table: str, *, by: str, sentence: str = "") -> Response:
        path, file = self._schema()
        rows = columns_of(file)
        shown = _visible(rows, state, table)
        names = [name for _, name in tables_of(file.document) if name]
        return self.office.show(
            "prepare_columns.html",
            COLUMNS,
            status=409 if sentence == STALE else 400 if sentence else 200,
            schema=path.name,
            seen=file.sha256,
            sentence=sentence,
            sections=[
                (name, [row for row in shown if row.table == name]) for name in (names or [""])
            ],
            tables=names,
            states=[(one, _counts(rows)[one], MEANING[one]) for one in STATES],
            total=len(rows),
            state=state,
            table=table,
            by=by,
            proposed=sum(row.state == PROPOSED for row in shown),
            problems=list(map(str, _problems(file.document))),
            quote=lambda row: quote(row.key, safe=""),
            link=lambda **changes: _columns_link(
                {"state": state, "table": table, "by": by} | changes
            ),
        )

    def save_confirmed(self, request: Request, form: FormData) -> Response:
        """Confirm the marked columns, or all that are shown, in somebody's name."""
        state, table = self.office.typed(form, "state"), self.office.typed(form, "table")
        by = self.office.typed(form, "by")
        path, file = self._schema()
        rows = _visible(columns_of(file), state, table)
        if not form.get("all"):
            marked = set(form.getlist("column"))
            rows = [row for row in rows if row.key in marked]
        sentence = ""
        if self.office.typed(form, "seen") != file.sha256:
            sentence = STALE
        elif not by or not by.isprintable() or len(by) > 64:
            sentence = "Write the name of the person who has checked the proposals."
        elif not any(row.state == PROPOSED for row in rows):
            sentence = "No proposed column is marked, so nothing was confirmed."
        if sentence:
            return self._columns_page(state, table, by=by, sentence=sentence)
        document = with_confirmed(file, rows, by)
        _require_no_new_problem(file.document, document)
        file.changed(document).save(path)
        return to(_columns_link({"state": state, "table": table, "by": by}))

    def column_page(self, request: Request) -> Response:
        """Show a form for one column or test."""
        _, file = self._schema()
        row = _row_at(columns_of(file), request.query_params.get("at", ""))
        part = at(file.document, row.place)
        values = shown_values(part, _inputs_of(row), always=_always(row.place))
        return self._column_page(row, values, {})

    def _column_page(
        self,
        row: ColumnRow,
        values: Mapping[str, str],
        problems: Mapping[str, Sequence[str]],
        sentence: str = "",
    ) -> Response:
        path, file = self._schema()
        rows = columns_of(file)
        place = [one.key for one in rows].index(row.key)
        part = at(file.document, row.place)
        return self.office.show(
            "prepare_part.html",
            COLUMNS,
            status=409 if sentence else 400 if problems else 200,
            title=f"{row.table}: {row.name}" if row.table else row.name,
            kind="test" if row.kind == "test" else "column",
            row=row,
            address="/column",
            at=row.key,
            back=COLUMNS,
            seen=file.sha256,
            schema=path.name,
            groups=grouped(_inputs_of(row)),
            values=values,
            open={one.name for one in _inputs_of(row) if _is_open(part, one)},
            problems=problems,
            sentence=sentence,
            notes=row.notes,
            suggestions={},
            rest=REST,
            before=rows[place - 1] if place else None,
            after=rows[place + 1] if place + 1 < len(rows) else None,
            quote=lambda one: quote(one.key, safe=""),
        )

    def save_column(self, request: Request, form: FormData) -> Response:
        """Write one column or test."""
        path, file = self._schema()
        row = _row_at(columns_of(file), self.office.typed(form, "at"))
        inputs = _inputs_of(row)
        values = _given(form, inputs)
        if self.office.typed(form, "seen") != file.sha256:
            return self._column_page(row, values, {}, STALE)
        problems = self._saved(path, file, row.place, inputs, values)
        if problems:
            return self._column_page(row, values, problems)
        rows = columns_of(WrittenYaml.read(path))
        if form.get("next"):
            following = [one for one in rows if one.state == OPEN]
            later = [one for one in following if _after(one, row, rows)]
            if later or following:
                return to(f"/column?at={quote((later or following)[0].key, safe='')}")
        return to(f"{COLUMNS}#{quote(row.key, safe='')}")

    def _saved(
        self,
        path: Path,
        file: WrittenYaml,
        place: Place,
        inputs: Sequence[Input],
        values: Mapping[str, str],
    ) -> dict[str, list[str]]:
        """Write a part of the schema; return the mistakes by field if it has new ones."""
        try:
            old = at(file.document, place)
            part = written_part(old, inputs, values, always=_always(place))
        except InputError as error:
            return {REST: list(items_of(error))}
        document = with_part(file.document, place, part)
        if new := _new_problems(file.document, document):
            return beside(new, inputs, _reader_place(document, place))
        try:
            file.changed(document).save(path)
        except InputError as error:
            return {"": list(items_of(error))}
        return {}

    # tables -------------------------------------------------------------------------------------

    def tables_page(self, request: Request) -> Response:
        """List what is declared of tables as a whole."""
        path, file = self._schema()
        parts = [
            (self._part_title(file, place), "/".join(map(str, place)), at(file.document, place))
            for place in _parts(file.document)
        ]
        return self.office.show(
            "prepare_tables.html",
            TABLES,
            schema=path.name,
            parts=[
                (title, quote(key, safe=""), _lines(part), [p for p in _gaps_in(file, key)])
                for title, key, part in parts
            ],
        )

    def table_page(self, request: Request) -> Response:
        """Show a form for what is declared of a table, or of the package."""
        _, file = self._schema()
        place = _part_at(file.document, request.query_params.get("at", ""))
        inputs = _inputs_of_part(file.document, place)
        values = shown_values(at(file.document, place), inputs, always=_always(place))
        return self._table_page(place, values, {})

    def _part_title(self, file: WrittenYaml, place: Place) -> str:
        names = dict(tables_of(file.document))
        if place == ("dpsynth",):
            return "The package" if is_linked(file.document) else "The table"
        return f"Table {names[place[:2]]}"

    def _table_page(
        self,
        place: Place,
        values: Mapping[str, str],
        problems: Mapping[str, Sequence[str]],
        sentence: str = "",
    ) -> Response:
        path, file = self._schema()
        part = at(file.document, place)
        inputs = _inputs_of_part(file.document, place)
        return self.office.show(
            "prepare_part.html",
            TABLES,
            status=409 if sentence else 400 if problems else 200,
            title=self._part_title(file, place),
            kind="table",
            row=None,
            address="/table",
            at="/".join(map(str, place)),
            back=TABLES,
            seen=file.sha256,
            schema=path.name,
            groups=grouped(inputs),
            values=values,
            open={one.name for one in inputs if _is_open(part, one)},
            problems=problems,
            sentence=sentence,
            notes=file.notes(place),
            suggestions=_suggestions(file, place),
            rest=REST,
            before=None,
            after=None,
            quote=lambda one: "",
        )

    def save_table(self, request: Request, form: FormData) -> Response:
        """Write what is declared of a table, or of the package."""
        path, file = self._schema()
        place = _part_at(file.document, self.office.typed(form, "at"))
        inputs = _inputs_of_part(file.document, place)
        values = _given(form, inputs)
        if self.office.typed(form, "seen") != file.sha256:
            return self._table_page(place, values, {}, STALE)
        problems = self._saved(path, file, place, inputs, values)
        return self._table_page(place, values, problems) if problems else to(TABLES)

    # names --------------------------------------------------------------------------------------

    def settings_page(self, request: Request) -> Response:
        """Show a form for what the release is called and how it is made."""
        settings = self.office.settings()
        values = shown_values(settings.document, _RELEASE, always=_HIDDEN)
        return self._settings_page(values, {})

    def _settings_page(
        self,
        values: Mapping[str, str],
        problems: Mapping[str, Sequence[str]],
        sentence: str = "",
    ) -> Response:
        settings = self.office.settings()
        return self.office.show(
            "prepare_settings.html",
            SETTINGS,
            status=409 if sentence else 400 if problems else 200,
            file=FILE,
            seen=settings.sha256,
            inputs=_RELEASE,
            values=values,
            problems=problems,
            sentence=sentence,
            rest=REST,
            open=set(),
            suggestions={},
        )

    def save_settings(self, request: Request, form: FormData) -> Response:
        """Write ``dpsynth.yaml``."""
        settings = self.office.settings()
        values = _given(form, _RELEASE)
        if self.office.typed(form, "seen") != settings.sha256:
            return self._settings_page(values, {}, STALE)
        old = settings.document
        try:
            part = written_part(old, _RELEASE, values, always=_HIDDEN)
        except InputError as error:
            return self._settings_page(values, {REST: list(items_of(error))})
        document = self._with_schema(part)
        if problems := _settings_problems(document, self.office.folder, missing=False):
            return self._settings_page(values, beside(problems, _RELEASE, ""))
        try:
            settings.changed(_like(document, old)).save(self.office.folder / FILE)
        except InputError as error:
            return self._settings_page(values, {"": list(items_of(error))})
        return to(BUDGET)

    def _missing(self) -> list[str]:
        """List what the settings lack, and their mistakes."""
        document = self._with_schema(self.office.settings().document)
        return list(map(str, _settings_problems(document, self.office.folder, missing=True)))

    def _with_schema(self, document: Mapping[str, Any]) -> dict[str, Any]:
        path = self.office.schema_path()
        named = {} if path is None else {"schema": path.name}
        return {"dpsynth_run": 1, **named, **document}

    # the budget ---------------------------------------------------------------------------------

    def budget_page(self, request: Request) -> Response:
        """Show what an epsilon means: risk, what is carried, policy and ledger."""
        query = request.query_params
        settings = self.office.settings().document
        epsilon = query.get("epsilon") or str(settings.get("epsilon", 1))
        slid, was = query.get("slider", ""), query.get("was", "")
        if slid and slid != was:
            epsilon = slid
        delta = query.get("delta") or str(settings.get("delta", _DELTA))
        return self._budget_page(epsilon, delta)

    def _budget_page(self, epsilon: str, delta: str, sentence: str = "") -> Response:
        file = self.office.settings()
        path, schema = self._schema()
        values: dict[str, Any] = {}
        draft = bool(at(schema.document, ("dpsynth", "draft")))
        try:
            if not draft:
                values = self._weighed(path, _float(epsilon, "epsilon"), _float(delta, "delta"))
        except DpsynthError as error:
            sentence = sentence or str(error)
        return self.office.show(
            "prepare_budget.html",
            BUDGET,
            status=409 if sentence == STALE else 400 if sentence else 200,
            epsilon=epsilon,
            delta=delta,
            seen=file.sha256,
            sentence=sentence,
            draft=draft,
            slider=_slider(epsilon),
            weighed=values or None,
            file=FILE,
            chosen=file.document.get("epsilon"),
        )

    def _weighed(self, path: Path, epsilon: float, delta: float) -> dict[str, Any]:
        """Say what this epsilon means beside others; nothing is opened."""
        schema = load_any(path)
        settings = self.office.settings().document
        model = str(settings.get("model", DEFAULT))
        quality = settings.get("publish_quality")

        def prepared_at(budget: float) -> Any:
            return prepare(
                schema, epsilon=budget, delta=delta, model=model, publish_quality=quality
            )

        if not 0 < epsilon <= MAX_EPSILON:
            raise InputError(f"epsilon is above 0 and at most {MAX_EPSILON:g}")
        prepared = prepared_at(epsilon)
        require_small_delta(schema, epsilon, delta)
        risks = []
        for one in sorted({*EPSILONS, epsilon}):
            other = prepared if one == epsilon else prepared_at(one)
            rates = attack_rates_of(other.plan.events, Unit.of(schema))
            risks.append((one, *map(percent_at_most, vars(rates).values()), capacity(other)))
        total = sum(event.mu() ** 2 for event in prepared.plan.events)
        dataset, tier = settings.get("dataset"), settings.get("tier")
        wish = Wish(schema, dataset or UNNAMED, tier, prepared.model, quality)
        state, account = _spent(dataset)
        policy = _policy(settings, state, self.office.folder)
        answer = asked(prepared, wish, policy, state, datetime.now(UTC))
        line = ["plan", str(path), "--epsilon", f"{epsilon:g}", "--delta", f"{delta:g}"]
        line += ["--dataset", dataset] if dataset else []
        line += ["--tier", tier] if tier else []
        line += ["--model", model] if model != DEFAULT else []
        return {
            "schema": schema.name,
            "model": f"{prepared.model} ({prepared.reason})",
            "unit": unit_text(schema),
            "population": f"{schema.population.value:,} {unit_noun(schema) or 'units'}",
            "cost": cost_text(schema, epsilon, delta),
            "takes": estimated(prepared).words,
            "risks": risks,
            "epsilon": epsilon,
            "conditions": attack_conditions(Unit.of(schema)),
            "words": labelled(capacity_lines(capacity(prepared))),
            "events": [
                (
                    event.name,
                    f"{event.mu() ** 2 / total:.0%}",
                    describe_event(event, unit_noun(schema)),
                )
                for event in prepared.plan.events
            ],
            "policy": None if policy is None else (policy.name, labelled(policy_lines(policy))),
            "answer": answer,
            "figure": figure_of,
            "dataset": dataset,
            "account": account,
            "meters": [] if account is None else [_meter(one) for one in account.meters],
            "command": command(*line),
        }

    def save_budget(self, request: Request, form: FormData) -> Response:
        """Write epsilon and delta into ``dpsynth.yaml``."""
        settings = self.office.settings()
        epsilon, delta = self.office.typed(form, "epsilon"), self.office.typed(form, "delta")
        if self.office.typed(form, "seen") != settings.sha256:
            return self._budget_page(epsilon, delta, STALE)
        try:
            budget = {"epsilon": _float(epsilon, "epsilon"), "delta": _float(delta, "delta")}
        except InputError as error:
            return self._budget_page(epsilon, delta, str(error))
        document = {**self._with_schema(settings.document), **budget}
        if problems := _settings_problems(document, self.office.folder, missing=False):
            return self._budget_page(epsilon, delta, "; ".join(map(str, problems)))
        settings.changed(_like(document, settings.document)).save(self.office.folder / FILE)
        return to(FINISH)

    # the end ------------------------------------------------------------------------------------

    def finish_page(self, request: Request) -> Response:
        """Say what is left, and how the person goes on who may see rows."""
        return self._finish_page()

    def _finish_page(self, sentence: str = "") -> Response:
        path, file = self._schema()
        draft = bool(at(file.document, ("dpsynth", "draft")))
        problems = _problems(file.document)
        return self.office.show(
            "prepare_finish.html",
            FINISH,
            status=400 if sentence else 200,
            schema=path.name,
            seen=file.sha256,
            sentence=sentence,
            draft=draft,
            gaps=_gaps(file.document),
            problems=list(map(str, problems)),
            missing=self._missing(),
            check=command("schema", "check", path),
            line=command("office", "run", self.office.folder),
            file=FILE,
        )

    def finish(self, request: Request, form: FormData) -> Response:
        """Declare that the draft is finished, if nothing is open."""
        path, file = self._schema()
        if self.office.typed(form, "seen") != file.sha256:
            return self._finish_page(STALE)
        document = with_part(file.document, ("dpsynth", "draft"), None)
        problems = _problems(document)
        if problems:
            return self._finish_page("Something is still open, so the schema is still a draft.")
        file.changed(document).save(path)
        return to(FINISH)


def _drafted(given: Mapping[str, str], dictionary: str | Path | None) -> Draft:
    row = given["header_row"]
    if row and not (row.isdecimal() and int(row) > 0):
        raise InputError("the line of the headings is a number from 1")
    sign = "\t" if given["delimiter"] == "\\t" else given["delimiter"]
    if len(sign) > 1 or sign in ('"', "\r", "\n"):
        raise InputError("the delimiter is one character, such as ;")
    if not given["table"] and dictionary is None:
        raise InputError("name a table, of which the headings are read, or give a data dictionary")
    return draft_any(
        header=given["table"] or None,
        dictionary=dictionary,
        delimiter=sign or None,
        encoding=given["encoding"] or None,
        sheet=given["sheet"] or None,
        header_row=int(row) if row else None,
    )


def _plain_name(filename: str) -> str:
    """Return the name of an upload as that of a file in one folder.

    >>> _plain_name("../x/Satz März.xlsx"), _plain_name(".."), _plain_name("")
    ('Satz März.xlsx', 'dictionary', 'dictionary')
    """
    name = filename.replace("\\", "/").rpartition("/")[2]
    kept = "".join(letter for letter in name if letter.isalnum() or letter in " ._-()")
    return kept[-100:].lstrip(". ") or "dictionary"


def _counts(rows: Sequence[ColumnRow]) -> dict[str, int]:
    return {state: sum(row.state == state for row in rows) for state in STATES}


def _visible(rows: Sequence[ColumnRow], state: str, table: str) -> list[ColumnRow]:
    return [row for row in rows if state in ("", row.state) and table in ("", row.table)]


def _columns_link(changes: Mapping[str, str]) -> str:
    given = {name: value for name, value in changes.items() if value}
    return f"{COLUMNS}?{urlencode(given)}" if given else COLUMNS


def _row_at(rows: Sequence[ColumnRow], key: str) -> ColumnRow:
    for row in rows:
        if row.key == key:
            return row
    raise InputError("the schema has no such column any more; go back to the table of columns")


def _after(one: ColumnRow, row: ColumnRow, rows: Sequence[ColumnRow]) -> bool:
    keys = [each.key for each in rows]
    return row.key in keys and keys.index(one.key) > keys.index(row.key)


def _inputs_of(row: ColumnRow) -> tuple[Input, ...]:
    return TEST if row.kind == "test" else COLUMN


def _always(place: Place) -> tuple[str, ...]:
    """Name the keys of a part that its form does not change."""
    if place == ("dpsynth",):
        return ("version", "draft")
    return ("name",) if isinstance(place[-1], int) else ()


def _is_open(part: Any, one: Input) -> bool:
    return is_todo(at(part, one.place))


def _given(form: FormData, inputs: Sequence[Input]) -> dict[str, str]:
    """Return the texts of a form; several roles are one text."""
    names = [*(one.name for one in inputs), REST]
    return {
        name: " ".join(text for text in form.getlist(name) if isinstance(text, str))
        for name in names
    }


def _read(document: Any) -> AnySchema:
    return any_from_dict(document, "the schema")


def _problems(document: Any) -> tuple[Problem, ...]:
    """List the mistakes of a schema; gaps of a draft are none."""
    try:
        _read(document)
    except SchemaError as error:
        return error.problems
    return ()


def _new_problems(old: Any, new: Any) -> list[Problem]:
    """List the mistakes that a change makes; those of other columns do not stop it."""
    before = set(_problems(old))
    return [problem for problem in _problems(new) if problem not in before]


def _require_no_new_problem(old: Any, new: Any) -> None:
    if problems := _new_problems(old, new):
        raise SchemaError("as it would be", problems)


def _gaps(document: Any) -> list[str]:
    """List what a draft still lacks, one line a kind, as the reader says it."""
    try:
        _read(document).require_complete()
    except SchemaError as error:
        return [str(one) for one in error.problems if one.place != "dpsynth.draft"]
    return []


def _gaps_in(file: WrittenYaml, key: str) -> list[str]:
    """List the gaps of one part."""
    try:
        gaps = _read(file.document).gaps
    except SchemaError:
        return []
    place = _reader_place(file.document, place_of(key))
    own = [gap for gap in gaps if gap.place.startswith(f"{place}.") or gap.place == place]
    return [f"{gap.place[len(place) :].lstrip('.') or place}: {gap.message}" for gap in own]


def _reader_place(document: Any, place: Place) -> str:
    """Write a place as the reader's messages do."""
    words = ""
    for number, step in enumerate(place):
        if isinstance(step, int):
            words += f"[{step}]"
            name = at(document, (*place[: number + 1], "name"))
            if place[number - 1] == "fields" and isinstance(name, str):
                words += f" {shown(name)}"
        else:
            words += f".{step}" if words else step
    return words


def _parts(document: Any) -> list[Place]:
    """List the places of what is declared of tables as a whole."""
    if not is_linked(document):
        return [("dpsynth",)]
    return [("dpsynth",), *((*place, "dpsynth") for place, _ in tables_of(document))]


def _part_at(document: Any, key: str) -> Place:
    place = place_of(key)
    if place not in _parts(document):
        raise InputError("the schema has no such table any more; go back to the tables")
    return place


def _inputs_of_part(document: Any, place: Place) -> tuple[Input, ...]:
    if place == ("dpsynth",):
        return PACKAGE if is_linked(document) else ONE_TABLE
    name = at(document, (*place[:2], "name"))
    return PATIENTS_TABLE if name == at(document, ("dpsynth", "patients")) else ROWS_TABLE


def _suggestions(file: WrittenYaml, place: Place) -> dict[str, list[str]]:
    """Name the tables and columns that a field may name."""
    if not is_linked(file.document):
        return {}
    rows = columns_of(file)
    patients = str(at(file.document, ("dpsynth", "patients")) or "")
    of_patients = [row.name for row in rows if row.table == patients]
    names = {place: name for place, name in tables_of(file.document)}
    own = [row.name for row in rows if row.table == names.get(place[:2], "")]
    return {
        "patients": list(names.values()),
        "end": of_patients,
        "origin": of_patients,
        "time": own,
    }


def _lines(part: Any) -> list[tuple[str, str]]:
    quiet = ("version", "draft")
    if not isinstance(part, Mapping):
        return []
    return [(str(key), flow(value)) for key, value in part.items() if key not in quiet]


def _known_settings(settings: WrittenYaml) -> list[tuple[str, str]]:
    """Show what the settings say, but for the path of a table, which is not this role's."""
    document = settings.document
    return [(str(k), flow(v)) for k, v in document.items() if k not in ("data", "dpsynth_run")]


def _settings_problems(document: Any, folder: Path, *, missing: bool) -> list[Problem]:
    """List the mistakes of settings; with ``missing``, also what is not written yet.

    The table is not this role's, so that it is missing is none.
    """
    problems = mistakes_of(document, folder, data=Path("TABLE"))
    own = [one for one in problems if one.place != "data"]
    return [one for one in own if missing or not one.message.startswith("is missing")]


def _like(document: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Put keys in the order of the file."""
    names = [*(key for key in old if key in document), *(k for k in document if k not in old)]
    return {key: document[key] for key in names}


def _float(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InputError(f"{name} is a number, such as 0.5") from None
    if not 0 < number < float("inf"):
        raise InputError(f"{name} is a number above 0")
    return number


def _slider(epsilon: str) -> str:
    """Return the nearest epsilon that the slider can show."""
    with suppress(InputError):
        return f"{min(10.0, max(0.1, round(_float(epsilon, 'epsilon'), 1))):g}"
    return "1"


def _spent(dataset: str | None) -> tuple[State | None, Account | None]:
    """Return what the ledger says, and what was spent for a dataset."""
    book = Ledger.existing() if dataset else None
    if book is None or dataset is None:
        return None, None
    state = book.state()
    found = accounts(state, datetime.now(UTC), dataset=dataset, compose=False)
    return state, found[0] if found else None


def _policy(settings: Mapping[str, Any], state: State | None, folder: Path) -> Policy | None:
    """Return the policy that applies: that of the ledger, else the one that the settings name."""
    if state is not None and state.policy is not None:
        return state.policy
    named = settings.get("policy")
    return None if not named else Policy.load(folder / str(named))


def _meter(cap: Any) -> tuple[str, str]:
    if cap.name.endswith(SINGLE):
        return cap.name, f"at most {cap.limit:g}"
    return cap.name, f"{cap.used:.4g} of {cap.limit:g} used, {cap.left:.4g} left"


def labelled(lines: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Divide lines of a terminal, whose first twelve characters name what follows."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        label, words = line[:12].strip(), line[12:].strip()
        if label or not found:
            found.append((label, [words]))
        else:
            found[-1][1].append(words)
    return found
