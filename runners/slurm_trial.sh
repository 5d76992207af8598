# Submits a job of one minute that imports the trainers' packages, and says what became of it: one fact a line, a section's
# name and the text. The job is cancelled when we have to leave before it has ended.
umask 077
mkdir -p "$probe_dir" && dir=$(mktemp -d "$probe_dir/check-XXXXXX") || exit 1
job=
stop() {
  [ -z "$job" ] || [ -f "$dir/rc" ] || scancel "$job" 2>/dev/null
  rm -rf "$dir"
}
trap stop EXIT
trap 'exit 1' HUP INT TERM PIPE
tell() { sed "s/^/$1 /"; }

cat >"$dir/code.b64" <<'POTATO_CODE'
@CODE@
POTATO_CODE
printf '%s\n' "$probe_program" >"$dir/probe.py"
printf '%s\n' "$probe_job_env" >"$dir/job.env"
{
  echo '#!/bin/bash -l'
  echo "dir='$(printf %s "$dir" | sed "s/'/'\\\\''/g")'"
  printf '%s\n' "$probe_job"
} >"$dir/job.sh"

eval "set -- $probe_flags"
if ! answer=$(sbatch --parsable --export=NONE --no-requeue --job-name=potato-check --output="$dir/slurm.out" "$@" --time=1 "$dir/job.sh" 2>"$dir/refused"); then
  tell refused <"$dir/refused"
  exit 0
fi
# The id may have a cluster after it, and a site's notices around it.
job=$(printf '%s\n' "$answer" | tr -d '\r' | sed -n 's/^ *\([0-9][0-9]*\)\(;.*\)\{0,1\} *$/\1/p' | tail -n 1)
if [ -z "$job" ]; then
  printf '%s\n' "$answer" | tell refused
  exit 0
fi
echo "job $job"
end=$(($(date +%s) + probe_seconds))
gone=0
while [ ! -f "$dir/rc" ] && [ "$(date +%s)" -lt "$end" ] && [ $gone -lt 10 ]; do
  sleep 1
  # shellcheck disable=SC2012 # the listing is for its effect: network storage shows a file late without it
  ls "$dir" >/dev/null
  if state=$(squeue -h -j "$job" -o '%T (%r)' 2>/dev/null); then
    echo "state $state"
    if [ -n "$state" ]; then gone=0; else gone=$((gone + 1)); fi
  fi
done
if [ -f "$dir/rc" ]; then
  for part in out err rc; do { cat "$dir/$part"; echo; } | sed "s/^/python $part /"; done
  echo 'python end'
fi
[ -f "$dir/slurm.out" ] && tail -n 20 "$dir/slurm.out" | tell output
exit 0
