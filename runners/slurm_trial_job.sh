cd "$dir" || exit 72
. ./job.env
@PRELUDE@
python=@PYTHON@
cd "$dir" || exit 72
case $python in
"~") python=$HOME ;;
"~/"*) python=$HOME/${python#??} ;;
/*) ;;
*/*) python=$HOME/$python ;;
*) python=$(command -v -- "$python") ;;
esac
{
  echo "path=$python"
  if [ -z "$python" ] || [ ! -e "$python" ]; then
    (exit 127)
  else
    "$python" -c "$(cat probe.py)" describe "$dir"
  fi
} >out 2>err
echo $? >rc.new && mv rc.new rc
