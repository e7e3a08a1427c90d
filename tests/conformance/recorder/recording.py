"""What a program delivered, as the record of a case."""

import sys

import tensorflow as tf

from . import program as programs
from . import values


def record(path):
    """Run the program beside a pipeline file; a record (cases/README.md)."""
    program = programs.load(path.with_suffix(".py"))
    datasets = [program.make(worker) for worker in range(program.workers)]
    columns = _columns_of(datasets[0].element_spec, program.columns)
    return {
        "name": path.stem,
        "about": program.about,
        "recorded_with": _versions(),
        "call": program.call,
        "num_workers": program.workers,
        "replicas": 1,
        **({"max_steps": program.max_steps} if program.max_steps is not None else {}),
        **({"epochs": program.epochs} if program.epochs != 1 else {}),
        "element_spec": {name: values.spec(of) for name, of in columns(datasets[0].element_spec).items()},
        **({"artifacts": _artifacts(program.artifacts())} if program.artifacts else {}),
        "workers": [_worker(dataset, columns, program) for dataset in datasets],
        **({"tolerance": program.tolerance} if program.tolerance else {}),
    }


def _versions():
    """Of Keras only if the program uses it."""
    keras = sys.modules.get("keras")
    return {"tensorflow": tf.__version__, **({"keras": keras.__version__} if keras else {})}


def _columns_of(element_spec, names):
    """A function from an element, or its spec, to its columns by name."""
    if isinstance(element_spec, dict):
        if names is None:
            names = tuple(element_spec)
        if sorted(names) != sorted(element_spec):
            raise programs.BadProgram(f"COLUMNS are {list(names)}, the elements have {list(element_spec)}")
        return lambda element: {name: element[name] for name in names}
    if not isinstance(element_spec, tuple):
        (name,) = names or ("value",)
        return lambda element: {name: element}
    if names is None or len(names) != len(element_spec):
        raise programs.BadProgram(f"an element is {len(element_spec)} tensors: COLUMNS must name each of them")
    return lambda element: dict(zip(names, element))


def _worker(dataset, columns, program):
    steps = []
    end = _iterate(dataset, columns, program, steps)
    return {"replicas": [steps], "end": end}


def _iterate(dataset, columns, program, steps):
    """Append the steps; return how it ended. MAX_STEPS counts over all epochs."""
    taken = 0
    try:
        for epoch in range(program.epochs):
            if epoch > 0:
                steps.append("epoch_end")
            for element in dataset:
                if taken == program.max_steps:
                    return "max_steps"
                steps.append({name: values.column(tensor) for name, tensor in columns(element).items()})
                taken += 1
    except tf.errors.OpError as error:
        return {"error": type(error).__name__.removesuffix("Error"), "message_has": _words(error, program)}
    return "end"


def _words(error, program):
    absent = [word for word in program.message_has if word not in str(error)]
    if absent:
        raise programs.BadProgram(f"TensorFlow's message lacks {absent} of MESSAGE_HAS: {error}")
    return list(program.message_has)


def _artifacts(made):
    return {name: made if isinstance(made, str) else values.column(made) for name, made in made.items()}
