#!/usr/bin/env bash
# Build the sdist and the wheel, and try the wheel in a clean environment on every supported Python found here.
# Leaves both files in dist/. Other interpreters: PYTHONS="/path/to/python3.12 ..." scripts/check_wheel.sh
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
supported=${PYTHONS:-"python3.11 python3.12 python3.13"}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tested=() skipped=()

install() { # PYTHON PACKAGE... : into the environment of PYTHON, in the versions that the tests run with
  local python=$1
  shift
  "$python" -m pip --disable-pip-version-check --quiet install --constraint "$root/constraints.txt" "$@"
}

find_python() { # NAME : print an interpreter that runs, if there is one
  local folder
  if "$1" -c '' 2>/dev/null; then
    echo "$1"
  elif folder=$(pyenv prefix "${1#python}" 2>/dev/null); then
    echo "$folder/bin/python"
  fi
}

echo "building into dist/"
rm -rf dist
python3 -m venv "$work/tools"
install "$work/tools/bin/python" build twine
"$work/tools/bin/python" -m build --outdir dist . >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
"$work/tools/bin/twine" check --strict dist/*
wheel=$(echo dist/*.whl)

"$work/tools/bin/python" - "$wheel" <<'PYTHON'
import sys, zipfile

names = zipfile.ZipFile(sys.argv[1]).namelist()
strangers = [name for name in names if not name.startswith("policyfuzz/") and ".dist-info/" not in name]
if strangers:
    sys.exit(f"the wheel has files outside of policyfuzz/: {', '.join(strangers[:5])}")
print(f"{sys.argv[1]}: {len(names)} files, all in policyfuzz/")
PYTHON

for name in $supported; do
  python=$(find_python "$name")
  if [ -z "$python" ]; then
    skipped+=("$name")
    continue
  fi
  home=$work/$(basename "$name")
  bin=$home/venv/bin
  echo "== $name ($("$python" -V))"
  mkdir "$home"
  "$python" -m venv "$home/venv"
  install "$bin/python" "$wheel"
  cd "$home" # away from the sources
  "$bin/policyfuzz" --version
  "$bin/python" -W error -c 'import policyfuzz as p; print(len([getattr(p, name) for name in p.__all__]), "public names")'
  "$bin/policyfuzz" fuzz acasxu --max-execs 2000 --ui none -o campaign || [ $? -eq 1 ] # 1: it has findings
  "$bin/policyfuzz" show campaign >show.txt
  head -3 show.txt
  cd "$root"
  tested+=("$name")
done

echo "tested: ${tested[*]:-none}; not on this machine: ${skipped[*]:-none}"
[ ${#tested[@]} -gt 0 ]
