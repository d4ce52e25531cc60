# How scripts that a person starts tell what they do. Sourced by them.
#
#   step WHAT LOG COMMAND...   runs a command that writes much, with its output in LOG. It says what
#                              it waits for when that takes longer than ten seconds, and when it
#                              fails, what has failed, the end of LOG, and where LOG is
# shellcheck shell=sh
step() {
  step_what=$1
  step_log=$2
  shift 2
  mkdir -p "$(dirname "$step_log")"
  # A lock that the caller holds as descriptor 9 is not this one's to keep. It ends with the caller.
  (
    step_left=10
    while [ $step_left != 0 ]; do
      sleep 1 >/dev/null 2>&1
      kill -0 $$ 2>/dev/null || exit 0
      step_left=$((step_left - 1))
    done
    echo "... waiting: $step_what (its log: $step_log)"
  ) 9>&- &
  step_teller=$!
  step_rc=0
  "$@" >"$step_log" 2>&1 || step_rc=$?
  kill $step_teller 2>/dev/null || true
  wait $step_teller 2>/dev/null || true
  [ $step_rc = 0 ] && return 0
  grep -v '^go: downloading ' "$step_log" | tail -n 40 >&2
  echo "FAILED: $step_what; the whole log is $step_log" >&2
  return $step_rc
}
