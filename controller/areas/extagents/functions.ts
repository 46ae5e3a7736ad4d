/** File with the key of the agent, in its folder. */
export const KEY_FILE = "agent.key";

/** File of the platform in the folder: how processes of the agent are recognised. */
export const STATE_FILE = ".odp-external-agent";

/** Exit code of a deployment that stopped the former version and could not start the new one. */
export const STOPPED_CODE = 113;

/**
 * Functions for POSIX shells without extensions: dash, busybox, bash. They are read with these variables set: `odp_dir`,
 * `odp_start`, `odp_stop`, `odp_mark` and `odp_gone_s`.
 *
 * - Processes of the agent are recognised by a variable that its start command gives them, or by the programs that its
 *   depot brought. Only Linux shows both. A program that overwrites its environment and is not of the depot is not seen.
 * - `odp_run` reads all output of a command and of what it leaves running, and keeps the beginning; its end is shown. A reader stays as long
 *   as the output is open. Otherwise a daemon that holds it would be killed by its next line.
 * - Actions on one folder follow one another, by a lock on the folder, which ends with the shell. Daemons do not get the
 *   lock. A host without `flock`, or a file system without locks, does without.
 * - Files of the folder are replaced by a rename from a folder of their own, because the owner of the folder may put a
 *   link under any name.
 */
export const FUNCTIONS = String.raw`
odp_keys= odp_put= odp_code=0 odp_seen=
odp_finish() {
  odp_end=$?
  trap '' TERM
  if [ "$odp_end" -ne 0 ] && [ -n "$odp_put" ]; then
    if [ -f "$odp_keys/former" ]; then mv -f -- "$odp_keys/former" ${KEY_FILE}; else rm -f -- ${KEY_FILE}; fi
  fi
  [ -z "$odp_keys" ] || rm -rf -- "$odp_keys"
  rm -rf -- "$odp_work"
  exit "$odp_end"
}
odp_begin() {
  cd -P -- "$odp_dir" 2>/dev/null || { echo "The folder $odp_dir does not exist or cannot be entered."; exit 1; }
  odp_lock
  odp_home=$(pwd -P)
  odp_work=$(mktemp -d) || exit 1
  trap odp_finish EXIT
  trap 'exit 143' TERM HUP INT
  : >"$odp_work/programs"
  [ -f ${STATE_FILE} ] || return 0
  sed -n 's/^program//p' ${STATE_FILE} >"$odp_work/programs"
  if grep -q '^seen$' ${STATE_FILE}; then odp_seen=1; fi
}
odp_lock() {
  [ -r . ] && command -v flock >/dev/null || return 0
  exec 9<.
  flock -n 9 2>/dev/null && return 0
  echo "waited for another action in this folder"
  flock 9 2>/dev/null || return 0
}
odp_alive() {
  {
    [ ! -s "$odp_work/programs" ] || ls -l /proc/[0-9]*/exe | grep -F -f "$odp_work/programs" |
      sed -n 's|.* /proc/\([0-9]*\)/exe -> .*|\1|p'
    grep -lF -- "ODP_EXTERNAL_AGENT=$odp_mark" /proc/[0-9]*/environ | cut -d/ -f3
  } 2>/dev/null | sort -nu | tr '\n' ' ' | sed 's/ $//'
}
odp_replace() {
  [ ! -d "$1" ] || return 1
  odp_stage=$(mktemp -d "$odp_home/.odp-XXXXXXXXXX") || return 1
  (cd -P -- "$odp_stage" && umask 077 && cat >new && mv -f -- new "$odp_home/$1")
  odp_code=$?
  rm -rf -- "$odp_stage"
  return "$odp_code"
}
odp_put_key() {
  [ "$(command -v printf)" = printf ] || { echo "This shell would show the key in the process list."; exit 1; }
  [ ! -d ${KEY_FILE} ] || { echo "${KEY_FILE} is a folder."; exit 1; }
  [ -n "$ODP_EXTERNAL_AGENT_KEY" ] || { echo "The agent of this host is too old to receive a key."; exit 1; }
  odp_keys=$(mktemp -d "$odp_home/.odp-XXXXXXXXXX") || exit 1
  if [ -f ${KEY_FILE} ] && [ ! -L ${KEY_FILE} ]; then ln -- ${KEY_FILE} "$odp_keys/former" || exit 1; fi
  odp_put=1
  printf %s "$ODP_EXTERNAL_AGENT_KEY" | odp_replace ${KEY_FILE} || exit 1
  unset ODP_EXTERNAL_AGENT_KEY
}
odp_keep_state() {
  { sed 's/^/program/' "$odp_work/programs"; [ -z "$odp_seen" ] || echo seen; } | odp_replace ${STATE_FILE} || exit 1
}
odp_run() {
  rm -f -- "$odp_work/pipe" "$odp_work/out" "$odp_work/read"
  mkfifo -m 600 "$odp_work/pipe" || exit 1
  { dd bs=1024 count=64; touch "$odp_work/read"; exec cat >/dev/null; } \
    <"$odp_work/pipe" >"$odp_work/out" 2>/dev/null 9<&- &
  ODP_EXTERNAL_AGENT=$odp_mark /bin/sh -c "$1" </dev/null >"$odp_work/pipe" 2>&1 9<&-
  odp_code=$?
}
odp_output() {
  odp_n=0
  while [ ! -e "$odp_work/read" ] && [ "$odp_n" -lt 5 ]; do sleep 0.1 || sleep 1; odp_n=$((odp_n + 1)); done 2>/dev/null
  tail -n "$1" "$odp_work/out"
}
odp_command() {
  odp_run "$1"
  odp_output +1
  [ "$odp_code" -eq 0 ] || exit "$odp_code"
}
odp_fail() {
  echo "$1"
  odp_output 8
  [ "$odp_code" -ne 0 ] || odp_code=1
  return "$odp_code"
}
odp_start() {
  printf 'start: '
  odp_now=$(odp_alive)
  if [ -n "$odp_now" ]; then echo "running already, process $odp_now"; return 0; fi
  odp_run "$odp_start"
  [ "$odp_code" -eq 0 ] || { odp_fail "ended with code $odp_code"; return; }
  odp_now=$(odp_alive)
  if [ -z "$odp_now" ] && [ -z "$odp_seen" ]; then
    echo "done, by its exit code; no process of it is recognised"
    odp_keep_state
    return
  fi
  sleep 1
  [ -n "$(odp_alive)" ] || { odp_fail "no process of it is left"; return; }
  odp_seen=1
  odp_keep_state
  echo "done, process $(odp_alive)"
}
odp_stop() {
  printf 'stop: '
  if [ -n "$odp_seen" ] && [ -z "$(odp_alive)" ]; then echo "nothing of it ran"; return 0; fi
  odp_run "$odp_stop"
  [ "$odp_code" -eq 0 ] || { odp_fail "ended with code $odp_code"; return; }
  odp_n=0
  while odp_now=$(odp_alive); [ -n "$odp_now" ]; do
    if [ "$odp_n" -ge "$odp_gone_s" ]; then odp_fail "still running after $odp_gone_s s, process $odp_now"; return; fi
    sleep 1
    odp_n=$((odp_n + 1))
  done
  echo "done"
}
odp_deploy() {
  odp_failed=1
  cat "$odp_work/new" >>"$odp_work/programs"
  if [ -n "$(odp_alive)" ]; then odp_stop || exit; odp_failed=${STOPPED_CODE}; fi
  cat "$odp_work/new" >"$odp_work/programs"
  odp_seen=
  odp_start || exit "$odp_failed"
}
`;
