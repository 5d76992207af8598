# The scheduler's commands and the jobs' interpreter, as this account finds them: name=path, the path empty without it.
for name in sbatch squeue scancel scontrol sinfo; do
  echo "$name=$(command -v -- "$name" 2>/dev/null)"
done
python=$(interpreter "$probe_job_python")
[ -n "$python" ] && [ -x "$python" ] && [ ! -d "$python" ] || python=
echo "job_python=$python"
