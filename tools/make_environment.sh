#!/bin/sh
# Make the environment of `make`: with a Python of this computer, or else with uv.
#
#     sh tools/make_environment.sh DIRECTORY TARGET [PYTHON]
#
# DIRECTORY is made anew. TARGET is that of make, for messages. PYTHON is the only one tried, if it is given.
#
# uv comes from the PATH. If it is not there, any Python from 3.8 on that has pip installs it into DIRECTORY/.uv.
set -eu

directory=$1
target=$2
chosen=${3:-}

# ur_rtde has wheels for Python 3.10 to 3.12: they come first.
candidates=${chosen:-python3.12 python3.11 python3.10 python3.13 python3.14 python3 python}
# Any of these can install uv.
uv_installers="python3 python python3.9 python3.8 $candidates"
uv_python=3.12
install_uv="curl -LsSf https://astral.sh/uv/install.sh | sh"

fail() {
    echo "$*" >&2
    exit 1
}

# Print the version of a Python, such as 3.12. A version manager may leave on PATH a python3.x that only prints an error.
version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

# Set `python` and `version` to the first candidate that can make an environment. Set `without_venv` to the version of
# one that lacks the module for it, as Debian's does without python3.x-venv, and `others` to what else was found.
find_python() {
    python=
    without_venv=
    others=
    for candidate in $candidates; do
        version=$(version_of "$candidate") || continue
        case $version in
            3.10 | 3.11 | 3.12 | 3.13 | 3.14) ;;
            *)
                others="$others${others:+, }$candidate is Python $version"
                continue
                ;;
        esac
        if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            python=$candidate
            return
        fi
        without_venv=${without_venv:-$version}
    done
}

# Set `uv` to the program, installed into the directory if it is not on the PATH; to nothing if that is impossible.
find_uv() {
    uv=$(command -v uv) && return
    for candidate in $uv_installers; do
        version=$(version_of "$candidate") || continue
        case $version in
            3.[89] | 3.[1-9][0-9]) ;;
            *) continue ;;
        esac
        "$candidate" -m pip --version >/dev/null 2>&1 || continue
        echo "Installing uv with $candidate into $directory/.uv"
        if PIP_ROOT_USER_ACTION=ignore "$candidate" -m pip --quiet --disable-pip-version-check --no-input install --target "$directory/.uv" uv; then
            uv=$directory/.uv/bin/uv
            return
        fi
    done
    uv=
}

# Say in one sentence why there is no environment, with the command that helps.
explain() {
    if [ -n "$chosen" ]; then
        fail "simbridge needs Python 3.10 to 3.14 with its venv module, and $chosen is not one${others:+ ($others)}:" \
            "name another (make PYTHON=/path/to/python3.12 $target), or none."
    elif [ -n "$without_venv" ]; then
        fail "Python $without_venv lacks its venv module, which makes the environment; on Debian and Ubuntu install it" \
            "with: sudo apt install python$without_venv-venv"
    else
        fail "simbridge needs Python 3.10 to 3.14, and this computer has none${others:+ ($others)}; uv brings one," \
            "and is installed with: $install_uv"
    fi
}

if [ -n "$(ls -A "$directory" 2>/dev/null)" ] && [ ! -e "$directory/pyvenv.cfg" ] && [ ! -e "$directory/.unfinished" ]; then
    fail "$directory exists and is not a Python environment: remove it, or name another with make VENV=directory."
fi

find_python
[ -n "$python" ] || [ -z "$chosen" ] || explain

rm -rf "$directory"
mkdir -p "$directory"
touch "$directory/.unfinished"

if [ -n "$python" ]; then
    echo "Making the environment $directory with $python ($version)"
    "$python" -m venv "$directory"
    exit
fi

find_uv
if [ -z "$uv" ]; then
    rm -rf "$directory"
    explain
fi
echo "No Python from 3.10 to 3.14 was found that can make an environment. uv makes $directory with Python $uv_python," \
    "which it downloads if this computer does not have it."
"$uv" venv --seed --allow-existing --python "$uv_python" "$directory" ||
    fail "uv could not make $directory, for the reason above: check the connection, or install Python $uv_python with its" \
        "venv module, and repeat make $target."
