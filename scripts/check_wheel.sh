#!/usr/bin/env bash
# Build the sdist, the wheel and an SBOM into dist/, twice, and try the wheel on every supported Python found here:
# in a clean environment, outside of the checkout, without network.
# Other interpreters: PYTHONS="/path/to/python3.12 ..." scripts/check_wheel.sh
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
supported=${PYTHONS:-"python3.11 python3.12 python3.13"}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tested=() skipped=()
tools=$work/tools/bin
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH # the time inside of all files, so that anybody builds the same bytes

pip() { # PYTHON ARGUMENT... : into the environment of PYTHON
  local python=$1
  shift
  "$tools/python" -m pip --python "$python" --disable-pip-version-check --quiet install "$@"
}

locked() { # PYTHON FILE OPTION... : what the lock FILE names, by its hashes
  pip "$1" --require-hashes --no-deps --requirement "$2" "${@:3}"
}

find_python() { # NAME : print an interpreter that runs, if there is one
  local folder
  if "$1" -c '' 2>/dev/null; then
    echo "$1"
  elif folder=$(pyenv prefix "${1#python}" 2>/dev/null); then
    echo "$folder/bin/python"
  fi
}

build() { # FOLDER : sdist, and the wheel from it
  "$tools/python" -m build --no-isolation --outdir "$1" . >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
}

echo "building into dist/"
rm -rf dist
python3 -m venv "$work/tools"
locked "$tools/python" requirements/release.txt
build dist
build "$work/again"
for file in "$work"/again/*; do
  cmp "$file" "dist/$(basename "$file")" || { echo "two builds differ"; exit 1; }
done
echo "two builds are the same, byte for byte"
"$tools/twine" check --strict dist/*
wheel=$root/$(echo dist/*.whl)

"$tools/python" - "$wheel" <<'PYTHON'
import pathlib, sys, zipfile

names = zipfile.ZipFile(sys.argv[1]).namelist()
strangers = [name for name in names if not name.startswith("policyfuzz/") and ".dist-info/" not in name]
if strangers:
    sys.exit(f"the wheel has files outside of policyfuzz/: {', '.join(strangers[:5])}")
cards = {path.relative_to("src").as_posix() for path in pathlib.Path("src").glob("policyfuzz/models/*/CARD.md")}
if not cards or not cards <= set(names) or not any(name.endswith("licenses/LICENSE") for name in names):
    sys.exit("the wheel lacks its LICENSE or the card of a model")
print(f"{pathlib.Path(sys.argv[1]).name}: {len(names)} files, all in policyfuzz/; LICENSE and {len(cards)} model cards")
PYTHON

# a lock whose hashes are of other files must be refused
sed -n '/^wheel==/,$p' requirements/build.txt | sed 's/sha256:...../sha256:00000/' >"$work/wrong.txt"
if locked "$tools/python" "$work/wrong.txt" --force-reinstall >"$work/wrong.log" 2>&1 ||
  ! grep -q "DO NOT MATCH THE HASHES" "$work/wrong.log"; then
  echo "a wrong hash was not refused"
  cat "$work/wrong.log"
  exit 1
fi
echo "a wrong hash is refused"

# the dependency tree of the wheel, and nothing else: no pip
python3 -m venv --without-pip "$work/tree"
locked "$work/tree/bin/python" requirements/run.txt
pip "$work/tree/bin/python" --no-index --no-deps "$wheel"
"$tools/cyclonedx-py" environment --pyproject pyproject.toml --mc-type library --output-reproducible \
  --output-file "$work/environment.json" "$work/tree/bin/python"
"$tools/cyclonedx-py" requirements --output-reproducible --output-file "$work/requirements.json" requirements/run.txt
"$tools/python" scripts/sbom.py "$work/environment.json" "$work/requirements.json" "${wheel%-py3*}.cdx.json"
(cd dist && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" . && sha256sum --check --quiet SHA256SUMS)

if unshare --map-root-user --net true 2>/dev/null; then
  offline=(unshare --map-root-user --net) online=()
else
  echo "unshare --net is not permitted here: the network is NOT cut"
  offline=() online=(--online)
fi
for name in $supported; do
  python=$(find_python "$name")
  if [ -z "$python" ]; then
    skipped+=("$name")
    continue
  fi
  home=$work/$(basename "$name")
  bin=$home/venv/bin
  mkdir -p "$home/base" "$home/onnx"
  "$python" -m venv --without-pip "$home/venv"
  locked "$bin/python" requirements/run.txt
  pip "$bin/python" --no-index --no-deps "$wheel"
  cp scripts/try_wheel.py "$home" # away from the sources
  line=$(cd "$home/base" && "${offline[@]}" "$bin/python" -I "$home/try_wheel.py" "${online[@]}")
  if pip "$bin/python" --only-binary :all: --constraint constraints.txt "$wheel[onnx]" 2>"$home/onnx.log"; then
    line+=", $(cd "$home/onnx" && "${offline[@]}" "$bin/python" -I "$home/try_wheel.py" "${online[@]}" --onnx)"
  else
    line+="; [onnx] cannot be installed: $(tail -1 "$home/onnx.log")"
  fi
  echo "$line"
  tested+=("$name")
done

ls dist
echo "tested: ${tested[*]:-none}; not on this machine: ${skipped[*]:-none}"
[ ${#tested[@]} -gt 0 ]
