# Where a path of the config is on the host: below the home when it is no absolute one. An interpreter may be a name on PATH.
absolute() { case $1 in "~") printf %s "$HOME" ;; "~/"*) printf %s "$HOME/${1#??}" ;; /*) printf %s "$1" ;; *) printf %s "$HOME/$1" ;; esac; }
interpreter() { case $1 in "~"* | */*) absolute "$1" ;; *) command -v -- "$1" ;; esac; }
