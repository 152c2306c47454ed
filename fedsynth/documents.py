"""Plans and schemas as people keep them: YAML or JSON files, the schema inline or in a file of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from fedsynth import bounded_yaml
from synth.errors import InputError
from synth.plan import Plan, parse_plan, parse_schema
from synth.schema import Schema


def read_document(path: Path) -> Any:
    """Parsed YAML; JSON is a subset of it."""
    try:
        with path.open("rb") as file:
            return bounded_yaml.load(file.read(bounded_yaml.LARGEST_BYTES + 1).decode("utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; check the path") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; give the path of a YAML or JSON file in it") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8, or check that it is the right file") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; check the path and its permissions") from None
    except ValueError:
        raise InputError(f"{str(path)!r} is no name of a file; check the path") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not valid YAML or JSON: {_where(error)}") from None


def _where(error: yaml.YAMLError) -> str:
    """The place first, then what the parser expected; a tab is what people run into."""
    place, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if place is None or problem is None:
        return " ".join(str(error).split())
    hint = "; indent with spaces, not tabs" if "cannot start any token" in problem else "; look there and just before"
    return f"line {place.line + 1}, column {place.column + 1}: {problem}{hint}"


def read_schema(path: Path) -> Schema:
    return parse_schema(read_document(path))


def read_plan_content(path: Path) -> dict[str, Any]:
    """The plan as a mapping, its schema file (a path beside the plan) read into it."""
    content = read_document(path)
    if not isinstance(content, dict):
        raise InputError(f"{path} holds no plan: a plan is a mapping with the keys name, parties, schema, …")
    if isinstance(content.get("schema"), str):
        content["schema"] = read_document(path.parent / content["schema"])
    return content


def read_plan(path: Path) -> Plan:
    return parse_plan(read_plan_content(path))


def write_yaml(content: Any) -> str:
    # Through JSON, so that only plain types reach the file.
    return yaml.safe_dump(json.loads(json.dumps(content, default=str)), sort_keys=False, allow_unicode=True, width=100)
