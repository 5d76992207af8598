# The scheduler's commands and the jobs' interpreter, as this account finds them: name=path, the path empty without it.
for name in sbatch squeue scancel scontrol sinfo; do
  echo "$name=$(command -v -- "$name" 2>/dev/null)"
done
absolute() { case $1 in "~") printf %s "$HOME" ;; "~/"*) printf %s "$HOME/${1#??}" ;; /*) printf %s "$1" ;; *) printf %s "$HOME/$1" ;; esac; }
case $probe_job_python in
  "~"* | */*) python=$(absolute "$probe_job_python") ;;
  *) python=$(command -v -- "$probe_job_python") ;;
esac
[ -n "$python" ] && [ -x "$python" ] && [ ! -d "$python" ] || python=
echo "job_python=$python"
