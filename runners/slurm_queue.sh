# What the scheduler says: its partitions, and when a job with the backend's settings would start. One fact a line: a
# section's name, then the text. No command may hang for ever where the controller is silent.
limited() { if command -v timeout >/dev/null 2>&1; then timeout "$probe_seconds" "$@"; else "$@"; fi; }
tell() { sed "s/^/$1 /"; }
if command -v sinfo >/dev/null 2>&1; then
  limited sinfo -h -O 'partition:|,available:|,time:|,nodes:|,gres:|,gresused:|,statelong:|' 2>&1 | tell partition
fi
eval "set -- $probe_flags"
said=$(mktemp) || exit 1
limited sbatch --test-only "$@" --wrap true >/dev/null 2>"$said"
echo "start_rc $?"
tell start <"$said"
rm -f "$said"
