"""Judges specs by the JSON schema of `sluice schema`, with the validator of python3-jsonschema.

    check_schema.py SCHEMA accept FILE...     every FILE is sound
    check_schema.py SCHEMA reject FOLDER      every FILE.yaml of FOLDER whose golden findings
                                              (FILE.txt) a schema can see is refused
    check_schema.py SCHEMA misspelt FILE KEY  KEY of FILE, misspelt, is named as unexpected

Each file is read in two ways, and both must give the same verdict: as Sluice reads it, where every
scalar is the text that was typed, and as editors read it, where YAML 1.2's core schema makes
numbers and booleans of what looks like them (its null words need quotes there: they stay text
here). PyYAML's own guessing (YAML 1.1: `no`, 12:30:45) is neither. Prints what is wrong and exits with 1, or the count of files.
"""

import json
import pathlib
import re
import sys

import yaml
from jsonschema import Draft202012Validator


class TypedLoader(yaml.SafeLoader):
    """Scalars as typed; nothing at all is null."""


class CoreLoader(yaml.SafeLoader):
    """YAML 1.2 core: what an editor sees."""


for loader in (TypedLoader, CoreLoader):
    loader.yaml_implicit_resolvers = {}
    loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^$"), [""])
for tag, pattern, first in (
    ("bool", r"^(true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$", "-+.0123456789"),
):
    CoreLoader.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(pattern), list(first))
CoreLoader.add_constructor("tag:yaml.org,2002:int", lambda self, node: int(node.value, 10))
CoreLoader.add_constructor("tag:yaml.org,2002:float", lambda self, node: float(node.value))

# Findings that need only the spec's shape. What concerns names, items, files or the values of
# expressions is not for a schema.
VISIBLE = re.compile(
    r"unknown key|is not supported yet|must be a map|must be a list|must be a single value"
    r"|has no unit|is not a duration|may mean hours and minutes|is not an amount of memory"
    r"|a whole number from|cannot be the name of|the version of the spec is missing|has version '[2-9a-z]"
    r"|the spec has no tasks$|has both 'run' and 'sh'|has no command|has no kind|has two kinds"
    r"|names both a task and a file|names neither|there is no type|has no type|has no 'max'"
    r"|is not a plain file name|'\$\{\{' in 'sh'|not of the form task.output|only 'exit' has statuses"
    r"|must have two or three numbers|which is not of type|is not the name of a variable"
)


def is_visible(line):
    return ": error: " in line and "(from '" not in line and "is ''," not in line and bool(VISIBLE.search(line))


def with_text_keys(value):
    """As in JSON, whose keys are texts."""
    if isinstance(value, dict):
        return {str(key): with_text_keys(child) for key, child in value.items()}
    return [with_text_keys(child) for child in value] if isinstance(value, list) else value


def readings(text):
    """The document in both ways; none when it is no YAML at all."""
    try:
        return [with_text_keys(yaml.load(text, Loader=loader)) for loader in (TypedLoader, CoreLoader)]
    except yaml.YAMLError:
        return []


def complaints(validator, document):
    """All errors, also those within alternatives, as `path: message`."""
    found, todo = [], list(validator.iter_errors(document))
    while todo:
        error = todo.pop()
        todo.extend(error.context or [])
        found.append("/".join(map(str, error.absolute_path)) + ": " + error.message)
    return found


def accept(validator, files):
    wrong = []
    for file in files:
        documents = readings(file.read_text(errors="replace"))
        if not documents:
            wrong.append(f"{file}: PyYAML cannot read it")
        for document in documents:
            wrong += [f"{file}: {text}" for text in complaints(validator, document)]
    return wrong, len(files)


def reject(validator, folder):
    wrong, judged = [], 0
    for file in sorted(folder.glob("*.yaml")):
        golden = file.with_suffix(".txt").read_text(errors="replace")
        visible = [line for line in golden.splitlines() if is_visible(line)]
        documents = readings(file.read_text(errors="replace")) if visible else []
        if not documents:
            continue
        judged += 1
        for document in documents:
            found = complaints(validator, document)
            if not found:
                wrong.append(f"{file}: accepted in spite of {visible}")
            for line in visible:
                key = re.search(r"unknown key '([^']*)'", line)
                if " in resources " in line:  # may be a limit, for all that a schema knows
                    continue
                if key and not any(f"'{key[1]}'" in text for text in found):
                    wrong.append(f"{file}: nothing is said of the key '{key[1]}': {found}")
    return wrong, judged


def misspelt(validator, file, key):
    text, count = re.subn(rf"\b{key}(?=:)", key[:-2] + key[-1] + key[-2], file.read_text(errors="replace"), count=1)
    wrong = key[:-2] + key[-1] + key[-2]
    if count != 1:
        return [f"{file} has no key '{key}'"], 0
    return [
        f"'{wrong}' is not named: {found}"
        for found in (complaints(validator, document) for document in readings(text))
        if not any(f"'{wrong}' was unexpected" in line or f"'{wrong}' does not match" in line for line in found)
    ], 1


def main():
    schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    task, arguments = sys.argv[2], sys.argv[3:]
    if task == "accept":
        wrong, count = accept(validator, [pathlib.Path(name) for name in arguments])
    elif task == "reject":
        wrong, count = reject(validator, pathlib.Path(arguments[0]))
    else:
        wrong, count = misspelt(validator, pathlib.Path(arguments[0]), arguments[1])
    print("\n".join(wrong) if wrong else count)
    sys.exit(1 if wrong or count == 0 else 0)


main()
