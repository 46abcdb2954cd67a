"""Lets `python -m policyfuzz` be the command line."""

if __name__ == "__main__":
    import os
    import sys

    # Python puts the current folder first; a file in it must not replace a module of Python or of a package
    if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109 - pathlib may be that file
        del sys.path[0]

    from policyfuzz.cli.main import run

    run()
