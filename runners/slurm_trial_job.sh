cd "$dir" || exit 72
. ./job.env
@PRELUDE@
cd "$dir" || exit 72
python=$(interpreter @PYTHON@)
{
  echo "path=$python"
  if [ -z "$python" ] || [ ! -e "$python" ]; then
    (exit 127)
  else
    "$python" -c "$(cat probe.py)" describe "$dir"
  fi
} >out 2>err
echo $? >rc.new && mv rc.new rc
