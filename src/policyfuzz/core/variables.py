"""The environment variables that users may set, and what each does. The documentation lists this table."""

#: Set to 1, it trusts what --trust does.
TRUST = "POLICYFUZZ_TRUST"
#: Set to anything, it shows tracebacks and warnings.
DEBUG = "POLICYFUZZ_DEBUG"
#: The policy that an exported test file runs.
POLICY = "POLICYFUZZ_POLICY"
#: The token that `web` asks for.
WEB_TOKEN = "POLICYFUZZ_WEB_TOKEN"

#: Name to meaning, for a reader.
VARIABLES = {
    TRUST: "`1` has the effect of `--trust` in every command and Python call: model files that can run code"
    " are loaded, and code that only a campaign file names is run.",
    DEBUG: "Set to anything, it adds the traceback to an internal error (exit code 4), and shows warnings of"
    " simulators and model packages.",
    POLICY: "The URI of the policy that a test file written by `export --what pytest` runs, instead of the"
    " one in the file.",
    WEB_TOKEN: "The token that `policyfuzz web` asks for, instead of `--token`, which other users can see.",
}
