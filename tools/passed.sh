# Checks whose result depends on the tree alone need not run twice. Sourced by lint.sh and generated.sh.
#
#   tree_hash PATHSPEC...     the hash of the files that git tracks or would, and of the tools' versions
#   has_passed CHECK HASH     says so if this tree has passed
#   note_passed CHECK HASH
# shellcheck shell=sh
cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}

tree_hash() {
  { go version; clang-19 --version 2>/dev/null; promtool --version 2>&1 | head -n 1
    git -c safe.directory='*' ls-files -z -co --exclude-standard -- "$@" | sort -zu | xargs -0 sha256sum 2>/dev/null; } | sha256sum | cut -c 1-24
}

has_passed() {
  [ -e "$cache/$1/$2" ] && echo "$1: this tree has passed ($cache/$1/$2)"
}

note_passed() {
  mkdir -p "$cache/$1"
  find "$cache/$1" -type f -mtime +30 -delete
  : >"$cache/$1/$2"
}
