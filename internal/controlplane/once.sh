# Sourced by the scripts that build programs for the tests, once a machine, into a folder outside the tree.

# once NAME VARIABLE FOLDER ESTIMATE: exits if the environment says "none" in VARIABLE, or if the function complete, of
# the caller, says that all is there. Else it sets $dir, the folder that VARIABLE names or inferscale/FOLDER/VERSION in the
# user's cache, takes its lock, sets $work, a folder in it that goes away at the end, and reports progress until then.
# VERSION is $version. The caller renames files from $work to $dir: nobody ever sees half of one.
once() {
	local variable=$2 folder=$3 estimate=$4 cache
	label="$1 $version"
	case $(uname -s) in # as os.UserCacheDir has it
	Darwin) cache=$HOME/Library/Caches ;;
	*) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;;
	esac
	dir=${!variable:-$cache/inferscale/$folder/$version}
	case $dir in
	none) echo "$1: none, as $variable says"; exit 0 ;;
	/*) ;;
	*) echo "build: $variable must be an absolute path, and is $dir" >&2; exit 1 ;;
	esac

	if complete; then
		echo "$label: built before, in $dir"
		exit 0
	fi

	mkdir -p "$dir"
	if command -v flock > /dev/null; then # elsewhere two calls build twice; the renames keep that harmless
		exec 9> "$dir/.lock"
		flock -n 9 || { echo "$label: waiting for another build"; flock 9; }
		if complete; then
			echo "$label: the other build made it"
			exit 0
		fi
		rm -rf "$dir"/.build.* # of builds that were killed
	fi

	echo "$label: building; the first time takes $estimate"
	work=$(mktemp -d "$dir/.build.XXXXXX")
	progress 9>&- &
	ticker=$!
	trap 'kill "$ticker" 2> /dev/null || true; rm -rf "$work"' EXIT
}

# progress says every half minute that the build goes on.
progress() {
	trap 'kill "$nap"; exit' TERM
	while :; do
		sleep 30 & nap=$!
		wait "$nap"
		echo "$label: still building ($SECONDS s)"
	done
}
