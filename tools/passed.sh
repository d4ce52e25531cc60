# Checks whose result depends on the tree alone need not run twice. Sourced by lint.sh and generated.sh.
#
#   tree_hash PATHSPEC...     the hash of the files that git tracks or would, and of the tools' versions
#   has_passed CHECK HASH     says so if this tree has passed
#   note_passed CHECK HASH
# shellcheck shell=sh
sums=$(mktemp)
trap 'rm -f "$sums"' EXIT
cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}

# Without git's list of files there is no hash, and nothing passes unseen.
tree_hash() {
  git -c safe.directory='*' ls-files -z -co --exclude-standard -- "$@" 2>/dev/null | sort -zu | xargs -0 -r sha256sum 2>/dev/null >"$sums"
  [ -s "$sums" ] || return 0
  { go version; clang-19 --version; dpkg-query -W libbpf-dev; promtool --version 2>&1 | head -n 1; cat "$sums"; } 2>/dev/null |
    sha256sum | cut -c 1-24
}

has_passed() {
  [ -n "$2" ] && [ -e "$cache/$1/$2" ] && echo "$1: this tree has passed ($cache/$1/$2)"
}

note_passed() {
  [ -n "$2" ] || return 0
  mkdir -p "$cache/$1"
  find "$cache/$1" -type f -mtime +30 -delete
  : >"$cache/$1/$2"
}
