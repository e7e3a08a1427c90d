"""The calls of one traced function as stages: which values get a column, when, and under which name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..folding import escaped, reads_as_several, with_column
from ..graph import Call, Column, Name, Origin, Scope, Unsupported
from ..remaining import remedy
from . import find, record, results
from .negation import INVERSE, negated
from .rule import Expression, Parse, Refusal, Refused, Rewrite, Rule, StageRule, refuse
from .writer import Writer, column_name

__all__ = ["Stage", "base_name", "leaves", "lower"]

Key = tuple[Any, ...]


@dataclass
class Stage:
    """A line of a pipeline file. `origins`: the lines of the program that it came from. `layer`: the
    object that draws, if one does. `columns`: those that there are before it, where they are known.
    `is_written`: its parameters are the file's already."""

    name: str
    params: Any = None
    origins: list[Origin] = field(default_factory=list)
    layer: object = None
    columns: list[str] | None = None
    is_written: bool = False


@dataclass(eq=False)
class Unit:
    """Values that are computed together: an expression, or a call that is a stage."""

    value: Column  # one of its results
    rule: Rule
    bound: dict[str, Any]
    reads: list[Column]
    writes: list[Column]
    serial: int
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def is_map(self) -> bool:
        return isinstance(self.rule, Expression)


def key_of(column: Column) -> Key:
    if column.field is not None:
        return ("input", id(column.field.name))
    assert column.call is not None
    return ("call", column.call.serial, column.index)


def base_name(column: Any, names: dict[int, str] | None = None) -> str:
    """The column that a value was made of. names: of results that have none, the program's variables."""
    while isinstance(column, Column):
        if names and isinstance(column.index, int) and id(column) in names:
            return names[id(column)]
        if column.field is not None:
            return column.field.name.text
        if isinstance(column.index, str):
            return "value" if reads_as_several(column.index) else column.index
        call = column.call
        if call is None:
            break
        if call.name == "tf.constant":
            return "constant"
        if column.index is not None:
            return f"column_{column.index}"
        column = next(iter(_columns((call.args, call.kwargs))), None)
    return "value"


def leaves(value: Any) -> list[Column]:
    """The columns of elements that a value is computed from."""
    found = []
    for column in _columns(value):
        if column.call is None:
            found.append(column)
        else:
            found += leaves((column.call.args, column.call.kwargs))
    return found


def _stacked(value: Any, origin: Origin) -> Any:
    """A list of columns is the tensor that TensorFlow makes of it."""
    if not isinstance(value, list) or not _columns(value):
        return value
    rule = find("tf.stack")
    assert rule is not None
    return results(Call("tf.stack", (value,), {}, origin, rule.infer(rule.bind((value,), {}))))


def _columns(value: Any) -> list[Column]:
    """The columns among arguments."""
    if isinstance(value, Column):
        return [value]
    if isinstance(value, dict):
        return [column for item in value.values() for column in _columns(item)]
    if isinstance(value, (list, tuple)):
        return [column for item in value for column in _columns(item)]
    if isinstance(value, slice):
        return _columns((value.start, value.stop, value.step))
    return []


def lower(
    inputs: list[Name],
    outputs: list[tuple[Name, Any]],
    scope: Scope,
    origin: Origin,
    outer_name: Callable[[Column], str | None],
    is_exact: bool = True,
    keeps_inputs: bool = False,
) -> tuple[list[Stage], list[Unsupported]]:
    """Stages that turn the columns `inputs` into `outputs`. With is_exact the others are dropped; with
    keeps_inputs none of the inputs is changed. outer_name: $name of a column of an outer function."""
    lowering = _Lowering(inputs, scope, origin, outer_name)
    if keeps_inputs:
        for name in inputs:
            lowering.wanted[("input", id(name))] = [name.text]
    stages = lowering.run(outputs, is_exact)
    return stages, lowering.unsupported


class _Lowering:
    def __init__(
        self,
        inputs: list[Name],
        scope: Scope,
        origin: Origin,
        outer_name: Callable[[Column], str | None],
    ) -> None:
        self.scope = scope
        self.outer_name = outer_name
        self.origin = origin
        self.unsupported: list[Unsupported] = []
        self.units: list[Unit] = []
        self.unit_of: dict[Key, Unit] = {}
        self.name_of: dict[Key, str] = {("input", id(name)): name.text for name in inputs}
        self.columns = [name.text for name in inputs]
        self.wanted: dict[Key, list[str]] = {}
        self.resolved: dict[int, Any] = {}
        self.drawn: dict[int, Call] = {}
        self.negated: dict[int, Call] = {}
        self.uses: dict[Key, int] = {}
        self.learned: set[str] = set()
        self.stages: list[Stage] = []
        self.writer = Writer(self._written, self._rule_of)

    # The calls.

    def _resolve(self, column: Column) -> Column:
        """The column without functions that are others."""
        while column.call is not None:
            rule = find(column.call.name)
            if not isinstance(rule, Rewrite):
                return column
            if column.call.serial not in self.resolved:
                bound = rule.bind(column.call.args, column.call.kwargs)
                self.resolved[column.call.serial] = self._placed(rule, bound, column.call)
            result = self.resolved[column.call.serial]
            column = result if column.index is None else result[column.index]
        return column

    def _placed(self, rule: Rewrite, bound: dict[str, Any], call: Call) -> Any:
        """The calls that stand for this one, on its line."""
        try:
            result = rule.into(**rule.without_ignored(bound))
        except Refused as refused:
            refused.call = refused.call or call
            raise
        except (TypeError, ValueError, AttributeError) as error:
            raise Refused(f"it is not known with these arguments: {error}", "write the stage by hand") from None
        _move(result, call)
        return result

    def _rule_of(self, column: Column) -> tuple[Rule, dict[str, Any]]:
        column = self._resolve(column)
        assert column.call is not None
        rule = find(column.call.name)
        if rule is None:
            why = "Tundish has no stage or expression for it"
            raise Refused(why, remedy(column.call.name), column.call)
        if isinstance(rule, Refusal):
            raise Refused(rule.why, rule.remedy, column.call)
        of = self.negated.get(column.call.serial)
        if of is not None:
            inverse = find(INVERSE[find(of.name).name])  # type: ignore[union-attr]
            assert inverse is not None
            return inverse, inverse.bind(of.args, of.kwargs)
        return rule, rule.bind(column.call.args, column.call.kwargs)

    def _is_outer(self, column: Column) -> bool:
        return column.field is not None and column.scope is not self.scope

    def _written(self, column: Column) -> str | None:
        """In an expression: the name of a column that exists, or $name."""
        column = self._resolve(column)
        if self._is_outer(column):
            why = "a column of an outer function has the name of a nearer one"
            return self.outer_name(column) or refuse(why, "rename it")
        name = self.name_of.get(key_of(column))
        return None if name is None else column_name(name)

    # Which values get a column.

    def _need(self, column: Column) -> Column:
        """A value that must be a column."""
        try:
            return self._needed(column)
        except Refused as refused:
            refused.call = refused.call or column.call
            raise

    def _needed(self, column: Column) -> Column:
        serial = None if column.call is None else column.call.serial
        column = self._resolve(column)
        key = key_of(column)
        if column.field is not None:
            if self._is_outer(column):
                raise Refused(
                    "a stage takes no column of the outer dataset",
                    "use it in an expression, or interleave later",
                )
            return column
        if key in self.unit_of:
            return column
        rule, bound = self._rule_of(column)
        call = column.call
        assert call is not None
        if isinstance(rule, Expression):
            reads = self._leaves(column)
            unit = Unit(column, rule, bound, reads, [column], serial or call.serial)
            self.unit_of[key] = unit
        else:
            unit = self._stage_unit(column, rule, bound, call)
            unit.serial = serial or call.serial
        self.units.append(unit)
        return column

    def _stage_unit(self, column: Column, rule: Rule, bound: dict[str, Any], call: Call) -> Unit:
        if isinstance(rule, Parse):
            if rule.check is not None:
                rule.check(bound)
            reads = [bound[rule.column]]
            writes = _all(results(call))
            parameters: dict[str, Any] = {}
        else:
            assert isinstance(rule, StageRule)
            reads = rule.inputs(bound)
            writes = [column] if column.index is None else _all(results(call))
            parameters = rule.parameters(bound)
            for name, value in parameters.items():
                if _columns(value):
                    raise Refused(f"{name} must be a constant", "write the value itself")
        if isinstance(rule, StageRule):
            self._check_layer(rule, call)
            reads = [*reads, *rule.others(bound).values()]
        reads = self._distinct([self._as_column(_stacked(read, call.origin)) for read in reads])
        unit = Unit(column, rule, bound, reads, writes, call.serial, parameters)
        for each in writes:
            self.unit_of[key_of(each)] = unit
        return unit

    def _distinct(self, reads: list[Column]) -> list[Column]:
        """The columns that a stage reads. One that it reads twice is copied: a stage takes a column once."""
        needed: list[Column] = []
        for read in map(self._need, reads):
            if any(key_of(read) == key_of(other) for other in needed):
                read = self._need(record("tundish.same", (read,), {}))
            needed.append(read)
        return needed

    def _check_layer(self, rule: StageRule, call: Call) -> None:
        """A layer that draws is one stage: a second call would go on with its state."""
        if rule.draws and call.layer is not None:
            if self.drawn.setdefault(id(call.layer), call) is not call:
                raise Refused("the layer is called twice, and draws on", "make a layer for each call")

    def _as_column(self, value: Any) -> Column:
        if isinstance(value, Column):
            return value
        result: Column = record("tf.constant", (value,), {})
        return result

    def _leaves(self, column: Column) -> list[Column]:
        """The columns that an expression reads. Stages inside it are computed before."""
        found: dict[Key, Column] = {}
        complaints: list[Refused] = []

        def visit(each: Column) -> None:
            each = self._resolve(each)
            if each.field is not None:
                if not self._is_outer(each):
                    found[key_of(each)] = each
                return
            rule = self._rule_of(each)[0]
            if each is not column and (not isinstance(rule, Expression) or self._is_shared(each)):
                found[key_of(each)] = self._need(each)
                return
            assert each.call is not None
            for inner in _columns((each.call.args, each.call.kwargs)):
                try:
                    visit(inner)
                except Refused as refused:
                    self._complain(inner, refused)
                    complaints.append(refused)

        visit(column)
        if complaints:
            raise _Told()
        return list(found.values())

    def _is_shared(self, column: Column) -> bool:
        """Used twice, and long enough to be a column of its own."""
        return key_of(column) in self.unit_of

    def _complain(self, column: Column, refused: Refused) -> None:
        if isinstance(refused, _Told):
            return
        call = refused.call or column.call
        origin = call.origin if call is not None else self.origin
        name = call.name if call is not None else "column"
        told = Unsupported(origin, name, refused.why, refused.remedy)
        if told not in self.unsupported:
            self.unsupported.append(told)

    # The stages.

    def run(self, outputs: list[tuple[Name, Any]], is_exact: bool) -> list[Stage]:
        values = []
        self.negated = negated([value for _, value in outputs])
        for name, value in outputs:
            column = self._as_column(value)
            try:
                if self._is_outer(self._resolve(column)):
                    column = record("tundish.same", (column,), {})
                column = self._need(column)
            except Refused as refused:
                self._complain(column, refused)
                continue
            self.wanted.setdefault(key_of(column), []).append(name.text)
            values.append(column)
        if self.unsupported:
            return []
        for unit in self.units:
            for read in unit.reads:
                self.uses[key_of(read)] = self.uses.get(key_of(read), 0) + 1
        waiting = sorted(self.units, key=lambda unit: unit.serial)
        while waiting:
            group = self._next_group(waiting)
            waiting = [unit for unit in waiting if unit not in group]
            try:
                self._emit(group)
            except Refused as refused:
                self._complain(group[0].value, refused)
                for unit in group:  # so that what reads them is looked at, too
                    self.name_of.update({key_of(value): "?" for value in unit.writes})
        if self.unsupported:
            return []
        self._finish(values, is_exact)
        return self.stages

    def _next_group(self, waiting: list[Unit]) -> list[Unit]:
        """The first unit that can be computed, and all others that one stage computes with it."""
        ready = [unit for unit in waiting if all(key_of(read) in self.name_of for read in unit.reads)]
        first = ready[0]
        if first.is_map:
            return [unit for unit in ready if unit.is_map]
        is_plain = len(first.reads) == 1 and len(first.writes) == 1
        if isinstance(first.rule, StageRule) and first.rule.together and is_plain:
            return self._alike(first, ready)
        return [first]

    def _alike(self, first: Unit, ready: list[Unit]) -> list[Unit]:
        group = [first]
        for unit in ready:
            if unit is first or unit.rule is not first.rule or len(unit.reads) != 1:
                continue
            if any(key_of(unit.reads[0]) == key_of(other.reads[0]) for other in group):
                continue
            if unit.parameters == first.parameters or self._with_column(unit) == self._with_column(
                first
            ):
                group.append(unit)
        return group

    def _with_column(self, unit: Unit) -> Any:
        """The parameters with {column} for the column's name."""
        name = self.name_of[key_of(unit.reads[0])]
        return _for_columns(unit, lambda path: with_column(path, name))

    def _emit(self, group: list[Unit]) -> None:
        for unit in group:
            for read in unit.reads:
                self.uses[key_of(read)] -= 1
        if group[0].is_map:
            self._emit_map(group)
        elif isinstance(group[0].rule, Parse):
            self._emit_parse(group[0])
        elif len(group[0].writes) > 1:
            self._emit_several(group[0])
        else:
            self._emit_stage(group)

    def _is_dead(self, name: str) -> bool:
        """No value that is needed later has this column."""
        for key, own in self.name_of.items():
            if own == name and (self.uses.get(key, 0) > 0 or key in self.wanted):
                return False
        return True

    def _choose(self, value: Column, taken: set[str], also: str | None = None) -> str:
        """A name for a new value: the one that it has in the end, that of its consumer, or another."""
        candidates = list(self.wanted.get(key_of(value), [])) or self._consumer_names(value)
        candidates += [also] if also is not None else []
        for name in candidates:
            if name not in taken and (name not in self.columns or self._is_dead(name)):
                return name
        base = candidates[0] if candidates else base_name(value)
        number = 2
        while f"{base}_{number}" in taken or f"{base}_{number}" in self.columns:
            number += 1
        return f"{base}_{number}"

    def _consumer_names(self, value: Column) -> list[str]:
        key = key_of(value)
        for unit in self.units:
            if any(key_of(read) == key for read in unit.reads) and len(unit.writes) == 1:
                return list(self.wanted.get(key_of(unit.writes[0]), [])) or self._consumer_names(
                    unit.writes[0]
                )
        return []

    def _put(self, value: Column, name: str) -> None:
        for key in [key for key, own in self.name_of.items() if own == name]:
            del self.name_of[key]
        self.name_of[key_of(value)] = name
        if name not in self.columns:
            self.columns.append(name)

    def _emit_map(self, group: list[Unit]) -> None:
        before = list(self.columns)
        texts: dict[str, str] = {}
        chosen: list[tuple[Unit, str]] = []
        for unit in group:
            name = self._choose(unit.value, set(texts), base_name(unit.value))
            texts[name] = self.writer(unit.value)
            chosen.append((unit, name))
        for unit, name in chosen:
            self._put(unit.value, name)
        self._add("map", texts, group)
        self.stages[-1].columns = before

    def _emit_stage(self, group: list[Unit]) -> None:
        first = group[0]
        rule = first.rule
        assert isinstance(rule, StageRule)
        others = rule.others(first.bound)
        sources = [[self.name_of[key_of(read)] for read in unit.reads] for unit in group]
        by_name = dict(zip(others, sources[0][len(sources[0]) - len(others) :]))
        sources = [names[: len(names) - len(others)] for names in sources]
        if len(group) > 1 and any(unit.parameters != first.parameters for unit in group):
            parameters = self._with_column(first)
        else:
            parameters = _for_columns(first, lambda path: path)
        parameters |= {rule.renamed.get(name, name): column for name, column in by_name.items()}
        targets: list[str] = []
        for unit, names in zip(group, sources):
            is_in_place = not rule.joined and len(names) == 1 and self._is_dead(names[0])
            target = names[0] if is_in_place else self._new(unit.value, set(targets))
            targets.append(target)
        listed = [names[0] for names in sources] if len(group) > 1 or not rule.joined else sources[0]
        params: dict[str, Any] = {"columns": listed, **parameters}
        if rule.joined or any(target != names[0] for target, names in zip(targets, sources)):
            if any(target == names[0] for target, names in zip(targets, sources)) and not rule.joined:
                return self._emit_apart(group)
            params["output"] = targets if len(targets) > 1 else targets[0]
        elif len(self.columns) == 1:
            del params["columns"]
        if len(group) > 1 and rule.learned_as and self.learned & set(targets):
            return self._emit_apart(group)
        for unit, target in zip(group, targets):
            self._put(unit.value, target)
        self._add(rule.stage, {**params, **self._naming(rule, params, targets)}, group)
        return None

    def _naming(self, rule: StageRule, params: dict[str, Any], targets: list[str]) -> dict[str, str]:
        """A name for what is learned, if the column's is that of something else."""
        if not rule.learned_as or rule.learned_as in params:
            return {}
        if len(targets) > 1 or targets[0] not in self.learned:
            self.learned.update(targets)
            return {}
        number = 2
        while f"{targets[0]}_{number}" in self.learned:
            number += 1
        self.learned.add(f"{targets[0]}_{number}")
        return {rule.learned_as: f"{targets[0]}_{number}"}

    def _emit_both(self, unit: Unit) -> None:
        """A stage whose second result is a column only if it is needed."""
        rule = unit.rule
        assert isinstance(rule, StageRule)
        source = self.name_of[key_of(unit.reads[0])]
        params: dict[str, Any] = {} if len(self.columns) == 1 else {"columns": source}
        params |= unit.parameters
        value, second = unit.writes
        target = source
        if not self._is_dead(source):
            target = params["output"] = self._new(value, set())
        self._put(value, target)
        if self.uses.get(key_of(second), 0) > 0 or key_of(second) in self.wanted:
            params[rule.also] = self._new(second, {target})
            self._put(second, params[rule.also])
        self._add(rule.stage, params, [unit])

    def _emit_several(self, unit: Unit) -> None:
        """A stage with several results, which replace its column."""
        rule = unit.rule
        assert isinstance(rule, StageRule)
        if rule.also:
            self._emit_both(unit)
            return
        source = self._spare(unit)
        names: list[str] = []
        for write in unit.writes:
            names.append(self._new(write, set(names)))
        self.columns.remove(source)
        for key in [key for key, own in self.name_of.items() if own == source]:
            del self.name_of[key]
        for write, name in zip(unit.writes, names, strict=True):
            self._put(write, name)
        self._add(rule.stage, {"columns": source, **unit.parameters, "output": names}, [unit])

    def _emit_apart(self, group: list[Unit]) -> None:
        for unit in group:
            self._emit_stage([unit])

    def _new(self, value: Column, taken: set[str]) -> str:
        """The name of a column that a stage adds: none that exists."""
        name = self._choose(value, taken)
        if name not in self.columns:
            return name
        number = 2
        while f"{name}_{number}" in self.columns or f"{name}_{number}" in taken:
            number += 1
        return f"{name}_{number}"

    def _emit_parse(self, unit: Unit) -> None:
        rule = unit.rule
        assert isinstance(rule, Parse)
        source = self._spare(unit)
        self.columns.remove(source)
        names: dict[Any, str] = {}
        made = {}
        for write in unit.writes:
            key = key_of(write)
            is_used = self.uses.get(key, 0) > 0 or key in self.wanted
            if rule.stage == "parse_example" and not is_used:
                continue
            is_sayable = isinstance(write.index, str) and not reads_as_several(write.index)
            text = write.index if is_sayable else self._choose(write, set(names.values()))
            if reads_as_several(text):
                text = "value"
            if text in self.columns or text in names.values():
                text = self._free(text, names)
            names[write.index] = text
            made[write.index] = write
        params = rule.make(unit.bound, names)
        for key, name in [(key, name) for key, name in self.name_of.items() if name == source]:
            del self.name_of[key]
        if source != "value" and len(self.columns) > 0:
            params["serialized"] = source
        for index, name in names.items():
            self._put(made[index], name)
        self._add(rule.stage, params, [unit])

    def _spare(self, unit: Unit) -> str:
        """The column that a unit reads, or a copy if it is needed later."""
        source = self.name_of[key_of(unit.reads[0])]
        if self._is_dead(source):
            return source
        copy = self._free(source)
        self._add("map", {copy: column_name(source)}, [unit])
        self.columns.append(copy)
        return copy

    def _free(self, base: str, names: dict[Any, str] | None = None) -> str:
        number = 2
        while f"{base}_{number}" in self.columns or f"{base}_{number}" in (names or {}).values():
            number += 1
        return f"{base}_{number}"

    def _add(self, name: str, params: Any, group: list[Unit]) -> None:
        origins: list[Origin] = []
        for unit in group:
            assert unit.value.call is not None
            if unit.value.call.origin not in origins:
                origins.append(unit.value.call.origin)
        drawing = [
            unit.value.call.layer
            for unit in group
            if unit.value.call is not None and isinstance(unit.rule, StageRule) and unit.rule.draws
        ]
        self.stages.append(Stage(name, params, origins, drawing[0] if drawing else None))

    def _finish(self, values: list[Column], is_exact: bool) -> None:
        """Copies, what is not wanted, and the last names."""
        copies: dict[str, str] = {}
        renames: dict[str, str] = {}
        kept: list[str] = []
        for value in values:
            own = self.name_of[key_of(value)]
            names = self.wanted[key_of(value)]
            if own in kept:
                continue
            kept.append(own)
            first = own if own in names else names[0]
            if first != own:
                renames[own] = first
            for name in names:
                if name != first:
                    copies[name] = column_name(own)
        if not is_exact:
            return
        gone = [name for name in self.columns if name not in kept]
        clash = [name for name in copies if name in self.columns and name not in gone]
        if clash:
            self.unsupported.append(Unsupported(
                self.origin, "map", f"the columns {', '.join(clash)} change places",
                "return them from two maps"))  # fmt: skip
        if gone:
            which = {"drop": gone} if len(gone) <= len(kept) else {"select": kept}
            for stage, names in which.items():
                self.stages.append(Stage(stage, {"columns": names}, [self.origin]))
        if renames:
            self.stages.append(Stage("rename", renames, [self.origin]))
        if copies:
            texts = {
                name: column_name(renames.get(text.strip("`"), text)) for name, text in copies.items()
            }
            columns = [renames.get(name, name) for name in kept]
            self.stages.append(Stage("map", texts, [self.origin], columns=columns))


def _for_columns(unit: Unit, change: Callable[[str], str]) -> Any:
    """The parameters of a stage, with its vocabulary's path as it is written: there alone {column} is not what
    it says."""
    path = unit.parameters.get("vocabulary")
    changed = {"vocabulary": change(escaped(path))} if isinstance(path, str) else {}
    return unit.parameters | changed


def _all(made: Any) -> list[Column]:
    """The columns that a call gives, in their order."""
    return list(made.values() if isinstance(made, dict) else made)


class _Told(Refused):
    """The reason is on the list already."""

    def __init__(self) -> None:
        super().__init__("", "")


def _move(result: Any, call: Call) -> None:
    """Calls made while another was rewritten stand on its line."""
    for column in _columns(result):
        inner = column.call
        if inner is not None and inner.serial > call.serial and inner.origin != call.origin:
            inner.origin = call.origin
            _move((inner.args, inner.kwargs), call)
