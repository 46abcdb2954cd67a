"""Reference pages, written from the code: commands, Python interface, targets, exit codes and variables.

Python is read as text and not imported, so annotations stand here as they stand in the code.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import click

import policyfuzz
from policyfuzz.cli.main import EXIT_CODES, VERBS
from policyfuzz.cli.main import policyfuzz as program
from policyfuzz.core import errors
from policyfuzz.core.variables import VARIABLES
from policyfuzz.targets.registry import BUILT_INS

PACKAGE = Path(policyfuzz.__file__).parent

#: Package to the title of its part in the Python reference, in the order of the page. Others follow by name.
PARTS = {
    "api": "Campaigns and results",
    "campaign": "Events, and the engine by hand",
    "core": "Targets, inputs, policies, oracles",
    "oracles": "Oracles to combine",
    "policies": "Loading policies",
    "targets": "Loading targets",
    "environments": "Environments",
    "search": "The search",
    "triage": "Second runs",
    "analysis": "Looking inside",
    "store": "The campaign file",
    "conformance": "Testing a target",
}


def commands() -> str:
    """Every verb with its arguments, options and examples."""
    parts = [
        "# Commands\n\nEvery verb of the command line, as `policyfuzz VERB --help` says it. Results go to"
        " stdout, everything else to stderr.\n",
        _table(("verb", "what it does"), [(f"[{verb}](#{verb})", text) for verb, text in VERBS.items()]),
    ]
    context = click.Context(program, info_name="policyfuzz")
    for verb in VERBS:
        command = program.get_command(context, verb)
        assert command is not None
        parts += _commands(verb, command, context, "##")
    return "\n".join(parts)


def _commands(verb: str, command: click.Command, parent: click.Context, level: str) -> Iterator[str]:
    """A verb, and then its own verbs if it has some."""
    context = click.Context(command, info_name=verb.rpartition(" ")[2], parent=parent)
    yield f"\n{level} {verb}\n\n{_command(command, context)}"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            part = command.get_command(context, name)
            assert part is not None
            yield from _commands(f"{verb} {name}", part, context, f"{level}#")


def _command(command: click.Command, context: click.Context) -> str:
    records = [
        record
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option) and "--help" not in parameter.opts
        if (record := parameter.get_help_record(context))
    ]
    options = [(_code(option), _prose(meaning)) for option, meaning in records]
    return "\n".join(
        [
            f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```\n",
            _paragraphs(command.help or ""),
            *([_table(("option", "meaning"), options)] if options else []),
            _paragraphs(command.epilog or ""),
        ]
    )


def _paragraphs(help_text: str) -> str:
    """Help of click: paragraphs, and after a backspace, lines as they are."""
    written = []
    for paragraph in inspect.cleandoc(help_text).split("\n\n"):
        if example := re.fullmatch(r"Example: (policyfuzz .*)", paragraph):
            written.append(f"Example:\n\n```sh\n{example[1]}\n```")
            continue
        if not paragraph.startswith("\b\n"):
            written.append(_prose(" ".join(paragraph.split())))
            continue
        title, *lines = paragraph.removeprefix("\b\n").splitlines()
        if all(line.startswith("  ") for line in lines) and lines:
            written.append(f"{_prose(title)}\n\n```sh\n{inspect.cleandoc(chr(10).join(lines))}\n```")
        else:
            written.append(_prose(" ".join([title, *lines])))
    return "\n\n".join(written) + "\n"


def python_interface() -> str:
    """Every public name with its signature, fields, methods and docstrings."""
    names = _public_names()
    packages = sorted({module.split(".")[1] for module in names.values()})
    parts = [
        "# Python interface\n\nEvery name that `import policyfuzz as pf` offers."
        " [Python and notebooks](../python.md) shows how they are used.\n"
    ]
    for package in sorted(packages, key=lambda one: [*PARTS, *packages].index(one)):
        parts.append(f"\n## {PARTS.get(package, package)}\n")
        parts += [
            _definition(name, module) for name, module in names.items() if module.split(".")[1] == package
        ]
    return "\n".join(parts)


def _public_names() -> dict[str, str]:
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text("utf-8"))
    imports = [line for line in stub.body if isinstance(line, ast.ImportFrom)]
    return dict(sorted((alias.name, str(line.module)) for line in imports for alias in line.names))


@cache
def _module(name: str) -> tuple[ast.Module, list[str]]:
    path = PACKAGE.joinpath(*name.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = path.read_text("utf-8")
    return ast.parse(text), text.splitlines()


def _definition(name: str, module: str) -> str:
    tree, lines = _module(module)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return f"### {name}\n\n{_signature(node)}\n{_docstring(node)}"
        if isinstance(node, ast.ClassDef) and node.name == name:
            return _class(node, lines)
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in ast.unparse(node).partition("=")[0]:
            return f"### {name}\n\n```python\n{ast.unparse(node)}\n```\n\n{_comment(node, lines)}\n"
        if isinstance(node, ast.ImportFrom):
            for one in node.names:
                if name == (one.asname or one.name):
                    return _definition(one.name, str(node.module)).replace(one.name, name)
    raise LookupError(f"{module} defines no {name}")


def _class(node: ast.ClassDef, lines: list[str]) -> str:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    parts = [
        f"### {node.name}\n\n```python\nclass {node.name}{f'({bases})' if bases else ''}\n```\n",
        _docstring(node),
    ]
    fields = [
        (
            f"`{ast.unparse(line.target)}: {ast.unparse(line.annotation)}{_default(line.value)}`",
            _prose(_comment(line, lines)),
        )
        for line in node.body
        if isinstance(line, ast.AnnAssign) and not ast.unparse(line.target).startswith("_")
    ]
    if fields:
        parts.append(_table(("field", "meaning"), fields))
    methods = [
        (
            f"`{_call(one, is_method=True)}`",
            _prose((ast.get_docstring(one) or "Make one.").partition("\n\n")[0]),
        )
        for one in node.body
        if isinstance(one, ast.FunctionDef) and (one.name == "__init__" or not one.name.startswith("_"))
    ]
    if methods:
        parts.append(_table(("method", "what it does"), methods))
    return "\n".join(parts)


def _default(value: ast.expr | None) -> str:
    """What a field is if it is not given; how dataclasses make it is of no interest."""
    return f" = {ast.unparse(value)}" if value and not ast.unparse(value).startswith("field(") else ""


def _call(node: ast.FunctionDef, is_method: bool = False) -> str:
    """`name(arguments) -> result` on one line."""
    arguments = ast.unparse(node.args)
    if is_method:
        arguments = re.sub(r"^(self|cls)(, )?", "", arguments)
    result = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    if "property" in [ast.unparse(one) for one in node.decorator_list]:
        return f"{node.name}{result}"
    return f"{node.name}({arguments}){result}"


def _signature(node: ast.FunctionDef) -> str:
    """The head of a function, an argument a line if it is long."""
    call = _call(node)
    if len(call) > 90:
        arguments = list(_arguments(node.args))
        result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        call = f"{node.name}(\n" + "".join(f"    {one},\n" for one in arguments) + f"){result}"
    return f"```python\n{call}\n```\n"


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    yield from map(_argument, plain, defaults)
    if arguments.vararg:
        yield f"*{ast.unparse(arguments.vararg)}"
    elif arguments.kwonlyargs:
        yield "*"
    yield from map(_argument, arguments.kwonlyargs, arguments.kw_defaults)
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(argument) + (f" = {ast.unparse(default)}" if default else "")


def _docstring(node: ast.FunctionDef | ast.ClassDef) -> str:
    text = ast.get_docstring(node) or ""
    return (
        "\n\n".join(
            f"```text\n{part}\n```" if "\n    " in part else _prose(part) for part in text.split("\n\n")
        )
        + "\n"
    )


def _comment(node: ast.stmt, lines: list[str]) -> str:
    """What `#:` says of an assignment: behind it, or in the lines above."""
    behind = re.search(r"#: (.*)", lines[(node.end_lineno or node.lineno) - 1])
    if behind:
        return behind[1]
    above = []
    for line in reversed(lines[: node.lineno - 1]):
        if not (found := re.match(r"\s*#: (.*)", line)):
            break
        above.insert(0, found[1])
    return " ".join(above)


def exit_codes() -> str:
    """Exit codes, the errors behind them, and environment variables."""
    raised = sorted(
        (
            one
            for one in vars(errors).values()
            if inspect.isclass(one) and issubclass(one, errors.PolicyFuzzError)
        ),
        key=lambda one: (one.exit_code, one.__name__),
    )
    return "\n".join(
        [
            "# Exit codes and variables\n\n## Exit codes\n",
            _table(("code", "meaning"), [(f"`{code}`", _prose(text)) for code, text in EXIT_CODES.items()]),
            "\n## Errors\n\nIn Python each of these is raised; all of them are a `pf.PolicyFuzzError`. On the"
            " command line the message goes to stderr, with a hint where there is one, and the command ends"
            " with the code.\n",
            _table(
                ("error", "means", "code"),
                [
                    (f"`{one.__name__}`", _prose(inspect.getdoc(one) or ""), str(one.exit_code))
                    for one in raised
                ],
            ),
            "\n## Environment variables\n",
            _table(("variable", "what it does"), [(f"`{name}`", text) for name, text in VARIABLES.items()]),
        ]
    )


def targets() -> str:
    """What `policyfuzz targets` lists, with all options."""
    parts = [
        "# Targets\n\nWhat can be fuzzed by name. Options follow the name after a colon: "
        "`policyfuzz fuzz acasxu:bucket=3,solvable=paper`. The [gallery](../gallery.md) shows failures.\n"
    ]
    for name, target in BUILT_INS.items():
        extra = f" Needs the extra `{target.extra}`." if target.extra else ""
        parts.append(f"\n## {name}\n\n{_prose(_sentence(target.summary))}{extra}\n")
        options = [(f"`{option}`", _prose(meaning)) for option, meaning in target.options.items()]
        if options:
            parts.append(_table(("option", "meaning (default)"), options))
    return "\n".join(parts)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _code(text: str) -> str:
    return f"`{text}`"


def _prose(text: str) -> str:
    """Text for markdown: angle brackets, stars and underscores stay what they are."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(
        part if part.startswith("`") else re.sub(r"([<>*_|\[\]])", r"\\\1", part) for part in parts
    )


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table; bars between backticks need no escape here."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ("---",) * len(heads), *rows]) + "\n"


#: Address on the site to what writes the page.
GENERATED: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands,
    "reference/python.md": python_interface,
    "reference/targets.md": targets,
    "reference/exit-codes.md": exit_codes,
}
