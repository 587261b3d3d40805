#!/bin/sh
# Check that ruckig can be installed: it has wheels for x86_64 only, and is compiled elsewhere.
machine=$(uname -m)
[ "$machine" = x86_64 ] && exit

for compiler in c++ g++ clang++; do
    command -v "$compiler" >/dev/null && exit
done
echo "ruckig has no wheel for $machine and is compiled, which needs a C++ compiler and Python's headers; on Debian and" \
    "Ubuntu install them with: sudo apt install g++ python3-dev" >&2
exit 1
