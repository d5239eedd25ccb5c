#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/tidy/embed_test.sh: proves that the embedded standard library depends on its files only: the order of arguments and
# the folder they lie in change no byte, a doubled name and a foreign ending are refused, and none at all is allowed.
set -u
embed=${BUILD:-build/debug}/tools/embed
passed=0
failed=0
expect() { # what, exit code wanted, exit code found
    if [ "$2" -eq "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$1: exit code $3, expected $2"
    fi
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/one" "$scratch/two"
for folder in one two; do
    printf 'export fn a() {}\n' > "$scratch/$folder/net.han"
    printf '// \000 \377 %s\n' '가' > "$scratch/$folder/network.han"
    printf '' > "$scratch/$folder/empty.han"
done
"$embed" "$scratch/1.c" "$scratch/one/network.han" "$scratch/one/empty.han" "$scratch/one/net.han"
expect "three modules" 0 $?
"$embed" "$scratch/2.c" "$scratch/two/net.han" "$scratch/two/network.han" "$scratch/two/empty.han"
expect "three modules in another order" 0 $?
cmp "$scratch/1.c" "$scratch/2.c"
expect "same bytes" 0 $?
[ "$(grep -o '{"[a-z]*"' "$scratch/1.c" | tr -d '{"\n')" = emptynetnetwork ]
expect "sorted by name" 0 $?
"$embed" "$scratch/3.c" "$scratch/one/net.han" "$scratch/two/net.han" 2>/dev/null
expect "two of one name" 1 $?
"$embed" "$scratch/4.c" "$scratch/1.c" 2>/dev/null
expect "not a module" 1 $?
"$embed" "$scratch/5.c" "$scratch/one/gone.han" 2>/dev/null
expect "a module that is not there" 1 $?
"$embed" "$scratch/6.c"
expect "no module" 0 $?
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
