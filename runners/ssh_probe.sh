# What a host says of itself, one fact a line: a section's name, then `out`, `err` or `rc`, then the text. Everything that
# may hang runs beside the rest and is left behind when the time is over.
tmp=$(mktemp -d "${TMPDIR:-/tmp}/potato-probe-XXXXXX" 2>/dev/null) || tmp=$(mktemp -d "$HOME/.potato-probe-XXXXXX") || exit 1
stop() {
  [ -f "$tmp/pids" ] && while read -r pid; do kill -9 "$pid" 2>/dev/null; done <"$tmp/pids"
  rm -rf "$tmp"
}
trap stop EXIT
trap 'exit 1' HUP INT TERM PIPE

dir=$(absolute "$probe_dir")
near=$dir
while [ ! -d "$near" ] && [ "$near" != / ]; do near=$(dirname "$near"); done

# begin SECTION COMMAND...: runs it beside, its output and status in files.
begin() {
  name=$1
  shift
  : >"$tmp/$name.out"
  : >"$tmp/$name.err"
  ( "$@" >"$tmp/$name.out" 2>"$tmp/$name.err" </dev/null; echo $? >"$tmp/$name.new"; mv "$tmp/$name.new" "$tmp/$name.rc" ) &
}
# killable COMMAND...: notes its pid, so that it can be ended.
killable() { sh -c 'echo $$ >>"$0"; exec "$@"' "$tmp/pids" "$@"; }

host() {
  echo "os=$(uname -s)"
  echo "arch=$(uname -m)"
  echo "host=$(hostname 2>/dev/null || uname -n)"
  echo "boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
  echo "time=$(date +%s)"
  echo "uid=$(id -u)"
  echo "home=$HOME"
  echo "dir=$dir"
}
disk() {
  if [ -e "$dir" ] && [ ! -d "$dir" ]; then echo notdir=1; fi
  [ -w "$near" ] && echo writable=1
  echo "free=$(df -Pk "$near" 2>/dev/null | awk 'END { print $4 }')"
  echo "inodes=$(df -Pi "$near" 2>/dev/null | awk 'END { print $4 }')"
  [ -f "$dir/code/$probe_code/.complete-$(uname -s)-$(uname -m)" ] && echo code=1
  file=$(mktemp "$near/.potato-XXXXXX" 2>/dev/null) || return 0
  printf '#!/bin/sh\nexit 0\n' >"$file" && chmod 700 "$file" && if "$file" 2>/dev/null; then echo exec=1; else echo exec=0; fi
  rm -f "$file"
}
smi() {
  command -v nvidia-smi >/dev/null 2>&1 || return 127
  ask=index,name,uuid,memory.total,memory.free,utilization.gpu
  killable nvidia-smi --query-gpu="$ask,compute_cap,driver_version" --format=csv,noheader,nounits >"$tmp/smi.first" 2>&1
  rc=$?
  if [ $rc -ne 0 ] && grep -q 'not a valid field' "$tmp/smi.first"; then
    killable nvidia-smi --query-gpu="$ask" --format=csv,noheader,nounits
    return
  fi
  cat "$tmp/smi.first"
  return $rc
}
python=$(interpreter "$probe_python")
[ -n "$probe_venv" ] && [ -f "$dir/$probe_venv/.potato-ready" ] && python=$dir/$probe_venv/bin/python
python() {
  echo "path=$python"
  [ -n "$python" ] && [ -e "$python" ] || return 127
  [ -x "$python" ] && [ ! -d "$python" ] || return 126
  CUDA_DEVICE_ORDER=PCI_BUS_ID killable "$python" -c "$probe_program" "$@" "$tmp"
}

cat >"$tmp/code.b64" <<'POTATO_CODE'
@CODE@
POTATO_CODE
begin host host
begin disk disk
begin smi smi
begin python python describe
begin torch python torch

end=$(($(date +%s) + probe_seconds))
left='host disk smi python torch'
while [ -n "$left" ] && [ "$(date +%s)" -lt "$end" ]; do
  waiting=
  for name in $left; do
    if [ -f "$tmp/$name.rc" ]; then
      for part in out err rc; do { cat "$tmp/$name.$part"; echo; } | sed "s/^/$name $part /"; done
      echo "$name end"
    else
      waiting="$waiting $name"
    fi
  done
  left=$waiting
  [ -z "$left" ] || sleep 0.05 2>/dev/null || sleep 1
done
